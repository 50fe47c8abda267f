# TLS contexts come up, and a handshake without a certificate fails as it should.
import ssl

context = ssl.create_default_context()
print(context.verify_mode.name, context.check_hostname, context.minimum_version.name)
print(len(context.get_ciphers()) > 5, ssl.HAS_TLSv1_3, ssl.OPENSSL_VERSION_INFO[0])
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
ours = context.wrap_bio(to_client, to_server, server_hostname="localhost")
theirs = server.wrap_bio(to_server, to_client, server_side=True)
try:
    ours.do_handshake()
except ssl.SSLWantReadError:
    print("client hello sent", to_server.pending > 100)
try:
    theirs.do_handshake()
except ssl.SSLError as error:
    print(error.reason)
print(len(ssl.RAND_bytes(16)))
