"""Serves this pod's name, and then asks all pods of the job for theirs."""
import os, socket, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

class Greeting(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(socket.gethostname().encode())

    def log_message(self, *_):
        pass

server = HTTPServer((os.environ["POD_IP"], 8000), Greeting)
threading.Thread(target=server.serve_forever, daemon=True).start()
for other in os.environ["OTHERS"].split():
    for attempt in range(200):
        try:
            found = urllib.request.urlopen(f"http://{other}:8000").read().decode()
            break
        except OSError:
            time.sleep(0.1)
    assert found == other.split(".")[0], (other, found)
    print("greeted by", found, flush=True)
# The others may still ask.
time.sleep(2)
