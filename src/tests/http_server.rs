//! A loopback server that answers as a test says, and a client for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::config::{Config, Raw, RawConfig};
use crate::http::Client;
use crate::secret::{ApiKey, Secret};
use crate::text::Text;

/// A request as it arrived.
#[derive(Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("UTF-8")
    }
}

/// What a request gets.
pub enum Reply {
    /// These bytes, and the connection stays.
    Whole(Vec<u8>),
    /// These bytes, and the connection is closed.
    ThenClose(Vec<u8>),
    /// These bytes, and nothing more until the client goes away.
    ThenHold(Vec<u8>),
    /// These bytes again and again until the client goes away.
    Endless(Vec<u8>, Vec<u8>),
}

impl Reply {
    pub fn json(status: u16, body: &str) -> Self {
        Self::with(
            status,
            "content-type: application/json\r\n",
            body.as_bytes(),
        )
    }

    pub fn data(data: &str) -> Self {
        Self::json(200, &format!(r#"{{"status":"success","data":{data}}}"#))
    }

    pub fn with(status: u16, headers: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        Self::Whole([head.as_bytes(), body].concat())
    }
}

pub struct Server {
    pub origin: String,
    requests: mpsc::UnboundedReceiver<Seen>,
    closed: mpsc::UnboundedReceiver<()>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start(answer: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let (seen, requests) = mpsc::unbounded_channel();
        let (close, closed) = mpsc::unbounded_channel();
        let answer = Arc::new(Mutex::new(answer));
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(
                    stream,
                    Arc::clone(&answer),
                    seen.clone(),
                    close.clone(),
                ));
            }
        });
        Self {
            origin,
            requests,
            closed,
            connections,
        }
    }

    /// The next request, once it has arrived whole.
    pub async fn seen(&mut self) -> Seen {
        self.requests.recv().await.expect("the server runs")
    }

    /// The requests that have arrived so far and were not asked for.
    pub fn seen_so_far(&mut self) -> usize {
        std::iter::from_fn(|| self.requests.try_recv().ok()).count()
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits until a client has left a connection.
    pub async fn left(&mut self) {
        self.closed.recv().await.expect("the server runs");
    }

    pub fn client(&self) -> Client {
        client(&self.origin)
    }
}

pub const KEY: &str = "skp_test";

pub fn key(text: &str) -> ApiKey {
    ApiKey::parse(&Secret::new(&Text::from(text))).expect("a key")
}

pub fn config(origin: &str) -> Arc<Config> {
    let raw = RawConfig {
        api_url: Raw::Given(Text::from(origin)),
        shape: Raw::Given(Text::from("s-1vcpu-1gb")),
        ..RawConfig::default()
    };
    Arc::new(Config::parse(raw).expect("a configuration"))
}

pub fn client(origin: &str) -> Client {
    Client::new(config(origin), key(KEY))
}

async fn serve(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    answer: Arc<Mutex<impl FnMut(&Seen) -> Reply>>,
    seen: mpsc::UnboundedSender<Seen>,
    close: mpsc::UnboundedSender<()>,
) {
    let mut unread = Vec::new();
    while let Some(request) = read(&mut stream, &mut unread).await {
        let reply = {
            let mut answer = answer.lock().expect("no test panics in an answer");
            (*answer)(&request)
        };
        let _ = seen.send(request);
        match reply {
            Reply::Whole(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            Reply::ThenClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::ThenHold(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let mut rest = [0; 1024];
                while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                break;
            }
            Reply::Endless(head, piece) => {
                let _ = stream.write_all(&head).await;
                while stream.write_all(&piece).await.is_ok() {}
                break;
            }
        }
    }
    let _ = close.send(());
}

/// Reads one request; `None` at the end of the connection.
async fn read(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Option<Seen> {
    let end = loop {
        if let Some(end) = find(unread, b"\r\n\r\n") {
            break end;
        }
        more(stream, unread).await?;
    };
    let head = String::from_utf8_lossy(&unread[..end]).into_owned();
    unread.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let mut request = Seen {
        method: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: Vec::new(),
    };
    if request.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = line(stream, unread).await?;
            let size = usize::from_str_radix(&size, 16).ok()?;
            let piece = exactly(stream, unread, size + 2).await?;
            if size == 0 {
                break;
            }
            request.body.extend_from_slice(&piece[..size]);
        }
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse().ok()?;
        request.body = exactly(stream, unread, length).await?;
    }
    Some(request)
}

async fn line(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Option<String> {
    loop {
        if let Some(end) = find(unread, b"\r\n") {
            let line = String::from_utf8_lossy(&unread[..end]).into_owned();
            unread.drain(..end + 2);
            return Some(line);
        }
        more(stream, unread).await?;
    }
}

async fn exactly(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    length: usize,
) -> Option<Vec<u8>> {
    while unread.len() < length {
        more(stream, unread).await?;
    }
    Some(unread.drain(..length).collect())
}

async fn more(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Option<()> {
    unread.reserve(16 * 1024);
    let read = stream.read_buf(unread).await.ok()?;
    (read > 0).then_some(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
