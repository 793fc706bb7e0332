//! An API server for commands that read a cluster: it answers each call by its path.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};

/// Serves each call by its path and number, and sends its path to the receiver. Returns the URL.
pub fn serve(
    answer: impl Fn(&str, usize) -> (u16, Value) + Send + 'static,
) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, calls) = mpsc::channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            let path = path_of(&stream);
            let (code, body) = answer(&path, number);
            // The receiver is dropped when the test ends.
            let _ = tell.send(path);
            respond(stream, code, &body);
        }
    });
    (url, calls)
}

fn path_of(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = reader.by_ref().lines().map(Result::unwrap);
    let first = head.next().unwrap();
    let headers = head.take_while(|line| !line.is_empty());
    let lengths = headers.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse::<usize>().unwrap())
    });
    // A client does not read the answer to a body that was not received.
    let mut body = vec![0; lengths.sum()];
    reader.read_exact(&mut body).unwrap();
    first.split(' ').nth(1).unwrap().to_owned()
}

fn respond(mut stream: TcpStream, code: u16, body: &Value) {
    // A string is the text of an answer that is not JSON.
    let body = body
        .as_str()
        .map_or_else(|| body.to_string(), str::to_owned);
    let head = format!(
        "HTTP/1.1 {code} answer\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A client does not read an answer that is too large.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}

pub fn status(code: u16, reason: &str) -> (u16, Value) {
    let message = format!("the server says {reason}");
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    });
    (code, status)
}

/// Writes the file `kubeconfig` with these contexts, each with the URL of its server and the namespace `in-CONTEXT`, unless it is the first
/// one, which is current and has none.
pub fn write_kubeconfig(folder: &Path, contexts: &[(&str, &str)]) {
    let cluster = |(name, url): &(&str, &str)| json!({"name": name, "cluster": {"server": url}});
    let context = |(at, (name, _)): (usize, &(&str, &str))| {
        let mut context = json!({"name": name, "context": {"cluster": name, "user": "test"}});
        if at > 0 {
            context["context"]["namespace"] = format!("in-{name}").into();
        }
        context
    };
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": contexts.first().unwrap().0,
        "clusters": contexts.iter().map(cluster).collect::<Vec<_>>(),
        "contexts": contexts.iter().enumerate().map(context).collect::<Vec<_>>(),
        "users": [{"name": "test", "user": {}}],
    });
    fs::write(folder.join("kubeconfig"), kubeconfig.to_string()).unwrap();
}
