# XML, HTML, templates, e-mail, URLs, configuration files, diffs.
import configparser
import difflib
import email.message
import html
import html.parser
import string
import tomllib
import urllib.parse
import xml.etree.ElementTree as ET


class Links(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        if tag == "a":
            print("link", dict(attributes).get("href"))


root = ET.fromstring("<shop><item price='2.5'>pen</item><item price='4'>ink &amp; pad</item></shop>")
print([(item.text, float(item.get("price"))) for item in root.iter("item")])
ET.SubElement(root, "item", price="1").text = "žluť"
print(ET.tostring(root, encoding="unicode"))
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print(error)
Links().feed('<p>See <a href="/x?y=1&amp;z=2">this</a> and <A HREF=plain>that</A>')
print(html.escape("<\"&'>"), html.unescape("&eacute;&#9731;"), string.Template("$who likes ${what}").substitute(who="A", what="B"))
print(urllib.parse.urlsplit("http://u:p@h:80/a%20b?q=1#f").port, urllib.parse.urlencode({"ž": "a b"}), urllib.parse.urljoin("http://h/a/b", "../c"))
config = configparser.ConfigParser()
config.read_string("[server]\nport = 80\nname = %(port)s-box\n")
print(config.getint("server", "port"), config["server"]["name"], tomllib.loads("a = [1, 2]\n[t]\nd = 2024-01-01"))
message = email.message.EmailMessage()
message["Subject"], message["To"] = "Příloha", "a@example.org"
message.set_content("body\n")
print(message["Subject"], message.as_bytes().splitlines()[0])
print("".join(difflib.unified_diff("a\nb\nc\n".splitlines(True), "a\nx\nc\n".splitlines(True), "old", "new")))
