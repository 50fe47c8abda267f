# Codecs: many encodings, error handlers, BOMs, base64 and friends.
import base64
import binascii
import codecs
import quopri

text = "Žluťoučký kůň €"
for name in ("utf-8", "utf-16", "utf-16-le", "utf-32-be", "cp1250", "iso-8859-2", "utf-7", "utf-8-sig"):
    try:
        data = text.encode(name)
        print(name, len(data), data.decode(name) == text)
    except UnicodeEncodeError as error:
        print(name, error.reason, error.start)
print("日本語".encode("shift_jis"), "日本語".encode("euc_jp"), "中文".encode("gb18030"), "한글".encode("euc_kr"))
for handler in ("ignore", "replace", "xmlcharrefreplace", "backslashreplace", "namereplace"):
    print(handler, "a€b".encode("ascii", handler))
print(b"a\xffb\xc3".decode("utf-8", "replace"), ascii(b"\xff".decode("utf-8", "surrogateescape")))
try:
    b"\xc3\x28".decode()
except UnicodeDecodeError as error:
    print(error)
decoder = codecs.getincrementaldecoder("utf-8")()
print([decoder.decode(bytes([byte])) for byte in "é🧪".encode()])
print(base64.b64encode(text.encode()), base64.b32encode(b"data"), base64.b85encode(b"data"))
print(binascii.hexlify(b"\x00\xff", "-"), quopri.encodestring(b"caf\xc3\xa9="), codecs.encode("Hello", "rot13"))
print("bücher.example".encode("idna"), "xn--bcher-kva".encode().decode("idna"))
