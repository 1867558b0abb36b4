"""Prints the events that the SDKs of Standard Webhooks and CloudEvents take, one line each."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = dict(self.headers.items())
        try:
            webhook.verify(body, headers, json_parse=False)
        except WebhookVerificationError:
            self.respond(401)
            return
        event = from_http_event(HTTPMessage(headers={name.lower(): value for name, value in headers.items()}, body=body))
        self.respond(204)
        changes = event.get_data()["changes"]
        print(event.get_type(), event.get_subject(), event.get_time().isoformat(), changes["name"]["to"], flush=True)

    def respond(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver)
print("port", server.server_address[1], flush=True)
server.serve_forever()
