"""Forwards connections to ADDRESS:PORT in other namespaces to this port of the loopback interface: ADDRESS PORT ENTER...

The command ENTER runs its arguments in these namespaces. A socket stays in the namespace in which it was created, so a process there
creates the listening one and passes it out of it. This process ends with its standard input.
"""

import socket
import subprocess
import sys
import threading

LISTEN = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
socket.send_fds(socket.socket(fileno=0), [b"."], [listener.fileno()])
"""


def listen(address, port, enter):
    ours, theirs = socket.socketpair()
    listening = [*enter, sys.executable, "-c", LISTEN, address, port]
    subprocess.run(listening, stdin=theirs, check=True)
    _, sockets, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=sockets[0])


def start(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def accept(listener, port):
    while True:
        start(forward, listener.accept()[0], port)


def forward(client, port):
    with client:
        try:
            server = socket.create_connection(("127.0.0.1", port))
        except OSError:
            # Nothing listens: the client sees that its connection is closed.
            return
        with server:
            answers = start(copy, server, client)
            copy(client, server)
            answers.join()


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # The other side is gone, so neither direction is of use.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    address, port, *enter = sys.argv[1:]
    start(accept, listen(address, port, enter), int(port))
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
