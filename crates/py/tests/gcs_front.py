"""The XML interface of Google Cloud Storage, as much of it as stores use, before an emulator.

The emulators that a test can have know conditions of writes, but only in the JSON interface. This server translates:
the emulator keeps the objects, decides about conditions, counts generations and divides lists into pages. A request
needs a token that the key of the service account signed, or a token that this server gave as the machine's identity.

    python gcs_front.py PORT EMULATOR_PORT KEY.json
"""

import base64
import http.client
import json
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

# Real pages have 1,000 names.
PAGE = 25
TOKEN = secrets.token_hex(8)
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
XML = "<?xml version='1.0' encoding='UTF-8'?>"
CUT = "cut"
ERRORS = {
    (401, False): ("AuthenticationRequired", "Authentication required."),
    (404, True): ("NoSuchBucket", "The specified bucket does not exist."),
    (404, False): ("NoSuchKey", "The specified key does not exist."),
    (412, False): ("PreconditionFailed", "At least one of the pre-conditions you specified did not hold."),
}


def version(about):
    return {"ETag": f'"{about["etag"]}"', "x-goog-generation": about["generation"]}


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet for an answer.
    wbufsize = -1
    disable_nagle_algorithm = True
    emulator = None
    key = None
    # The answers to the next successful writes: a status, CUT, or None for the usual answer.
    lost = []
    own = threading.local()

    def ask(self, method, path, body=None, kind=None):
        """Ask the emulator; return status, headers and content."""
        if not hasattr(self.own, "connection"):
            self.own.connection = http.client.HTTPConnection("127.0.0.1", self.emulator)
        self.own.connection.request(method, path, body, {"Content-Type": kind} if kind else {})
        got = self.own.connection.getresponse()
        return got.status, got.headers, got.read()

    def answer(self, status, content=b"", headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def allowed(self):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token == TOKEN:
            return True
        try:
            head, claims, signature = token.split(".")
            self.key.verify(decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(decoded(claims))
        except (ValueError, InvalidSignature):
            return False
        return claims["scope"] == SCOPE and claims["iat"] - 60 <= time.time() < claims["exp"]

    def error(self, status, bucket=None):
        missing = status == 404 and self.ask("GET", f"/storage/v1/b/{bucket}")[0] == 404
        code, message = ERRORS.get((status, missing), ("InvalidArgument", "Invalid argument."))
        text = f"{XML}<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        return status, text.encode(), {"Content-Type": "application/xml; charset=UTF-8"}

    def do_GET(self):
        url = urlsplit(self.path)
        bucket, _, name = unquote(url.path[1:]).partition("/")
        if url.path == METADATA:
            token = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            answer = 200, json.dumps(token).encode(), {"Content-Type": "application/json"}
        elif not self.allowed():
            answer = self.error(401)
        elif name:
            answer = self.get(bucket, name)
        else:
            answer = self.list(bucket, {key: values[0] for key, values in parse_qs(url.query).items()})
        self.answer(*answer)

    def get(self, bucket, name):
        path = f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
        status, _, about = self.ask("GET", path)
        if status != 200:
            return self.error(status, bucket)
        about = json.loads(about)
        status, headers, content = self.ask("GET", f"{path}?alt=media&generation={about['generation']}")
        if status != 200:
            return self.error(status, bucket)
        modified = headers["Last-Modified"] or self.date_time_string()
        return 200, content, {"Last-Modified": modified, **version(about)}

    def list(self, bucket, asked):
        names = {"prefix": "prefix", "delimiter": "delimiter", "continuation-token": "pageToken"}
        assert asked.pop("list-type") == "2"
        query = urlencode({**{names[name]: value for name, value in asked.items()}, "maxResults": PAGE})
        status, _, found = self.ask("GET", f"/storage/v1/b/{bucket}/o?{query}")
        if status != 200:
            return self.error(status, bucket)
        found = json.loads(found)
        text = f"{XML}<ListBucketResult>"
        for item in found.get("items", []):
            text += f"<Contents><Key>{escape(item['name'])}</Key><Generation>{item['generation']}</Generation>"
            text += f"<LastModified>{item['updated']}</LastModified><ETag>{escape(item['etag'])}</ETag>"
            text += f"<Size>{item['size']}</Size></Contents>"
        for prefix in found.get("prefixes", []):
            text += f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>"
        if found.get("nextPageToken"):
            text += f"<NextContinuationToken>{escape(found['nextPageToken'])}</NextContinuationToken>"
        return 200, f"{text}</ListBucketResult>".encode(), {"Content-Type": "application/xml; charset=UTF-8"}

    def do_PUT(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        bucket, _, name = unquote(urlsplit(self.path).path[1:]).partition("/")
        answer = self.put(bucket, name, content) if self.allowed() else self.error(401)
        lost = self.lost.pop(0) if answer[0] == 200 and self.lost else None
        if lost == CUT:
            self.close_connection = True
            return
        answer = (lost,) if lost else answer
        self.answer(*answer)

    def put(self, bucket, name, content):
        query = {"uploadType": "multipart"}
        if generation := self.headers.get("x-goog-if-generation-match"):
            query["ifGenerationMatch"] = generation
        limit = secrets.token_hex(16)
        about = f"Content-Type: application/json\r\n\r\n{json.dumps({'name': name})}"
        kind = "Content-Type: application/octet-stream"
        body = (
            f"--{limit}\r\n{about}\r\n--{limit}\r\n{kind}\r\n\r\n".encode()
            + content
            + f"\r\n--{limit}--\r\n".encode()
        )
        path = f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}"
        status, _, about = self.ask("POST", path, body, f"multipart/related; boundary={limit}")
        return (200, b"", version(json.loads(about))) if status == 200 else self.error(status, bucket)

    def do_POST(self):
        """Lose answers: one of the list for each of the next writes that succeed."""
        self.lost[:] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200)

    def log_message(self, *arguments):
        print(self.log_date_time_string(), *arguments, file=sys.stderr, flush=True)


if __name__ == "__main__":
    Front.emulator = int(sys.argv[2])
    private = json.loads(Path(sys.argv[3]).read_text())["private_key"].encode()
    Front.key = serialization.load_pem_private_key(private, None).public_key()
    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Front).serve_forever()
