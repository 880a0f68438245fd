//! Requests to a server on this machine, below the line where a permit is asked for.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ephor_base::Secret;
use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Egress, Key, Post, Response, seconds};
use crate::{BaseUrl, Error, Limits, Policy, guard::Lookup};

const LONG: Duration = Duration::from_secs(30);

/// Answers every name with the same addresses, and counts how often it was asked.
struct Fixed(Vec<IpAddr>, Arc<AtomicUsize>);

impl Lookup for Fixed {
    fn lookup(&self, _: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let found = self.0.clone();
        Box::pin(async move { Ok(found) })
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Takes one connection and reads the whole request.
async fn accept(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        request.extend(piece.iter().take(length));
        let text = String::from_utf8_lossy(&request).into_owned();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && body.len() >= length.unwrap_or(0)
        {
            return (stream, text);
        }
    }
}

fn policy(base: &BaseUrl) -> Policy {
    let (first_byte, idle) = (Duration::from_secs(5), Duration::from_millis(300));
    let limits = Limits { connect: Duration::from_secs(2), first_byte, idle, response_bytes: 1000 };
    Policy { origins: vec![base.clone()], limits, ..Policy::default() }
}

fn post(base: &BaseUrl) -> Post<'_> {
    let headers = vec![("accept", "text/event-stream")];
    Post { base, path: "chat/completions", query: "", key: None, headers, json: b"{}".to_vec() }
}

async fn whole(response: Response) -> Result<String, Error> {
    let pieces: Vec<_> = response.body.collect().await;
    let bytes: Result<Vec<Vec<u8>>, Error> = pieces.into_iter().collect();
    Ok(String::from_utf8(bytes?.concat()).unwrap())
}

#[tokio::test]
async fn a_request_reaches_the_configured_server_and_the_response_streams_back() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}/v1").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let key = Secret::new("k-1".to_owned());
    let server = async {
        let (mut stream, request) = accept(&listener).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        for piece in ["3\r\none\r\n", "4\r\n two\r\n", "0\r\n\r\n"] {
            stream.write_all(piece.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        request
    };
    let client = async {
        let key = Key { header: "authorization", before: "Bearer ", secret: &key };
        let response = egress.send(LONG, Post { key: Some(key), ..post(&base) }).await.unwrap();
        assert_eq!((response.status, response.content_type.as_str()), (200, "text/event-stream"));
        whole(response).await.unwrap()
    };
    let (request, body) = tokio::join!(server, client);
    assert_eq!(body, "one two");
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer k-1\r\n"), "{request}");
}

#[tokio::test]
async fn a_key_goes_into_its_own_header_and_no_other_header_takes_its_place() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let secret = Secret::new(" k-1\n".to_owned());
    let server = async {
        let (mut stream, request) = accept(&listener).await;
        let answer = b"HTTP/1.1 429 Slow\r\nretry-after-ms: 70\r\nRetry-After: 1\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        request
    };
    let client = async {
        let headers = vec![("x-api-key", "other"), ("X-Team", "a"), ("x-team", "b")];
        let key = Key { header: "x-api-key", before: "", secret: &secret };
        let post = Post { path: "v1beta/models/m:go", query: "alt=sse", key: Some(key), headers, ..post(&base) };
        egress.send(LONG, post).await.unwrap()
    };
    let (request, response) = tokio::join!(server, client);
    assert!(request.starts_with("POST /v1beta/models/m:go?alt=sse HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-api-key: k-1\r\n") && !request.contains("other"), "{request}");
    assert!(request.contains("x-team: b\r\n") && !request.to_lowercase().contains("authorization"), "{request}");
    assert_eq!((response.header("Retry-After-Ms"), response.retry_after), (Some("70"), Some(1)));
}

#[tokio::test]
async fn what_cannot_be_a_header_is_refused_without_being_shown() {
    let base: BaseUrl = "http://127.0.0.1:1".parse().unwrap();
    let egress = Egress::new(policy(&base));
    let secret = Secret::new("sk-very\nsecret".to_owned());
    let key = Key { header: "authorization", before: "Bearer ", secret: &secret };
    for post in [
        Post { key: Some(key), ..post(&base) },
        Post { headers: vec![("x-team", "sk-very\nsecret")], ..post(&base) },
        Post { headers: vec![("x team", "sk-very")], ..post(&base) },
    ] {
        let error = egress.send(LONG, post).await.unwrap_err();
        assert!(matches!(error, Error::Setup(_)) && !error.to_string().contains("sk-very"), "{error}");
    }
}

#[tokio::test]
async fn an_origin_that_is_not_configured_is_not_reached() {
    let (listener, address) = listener().await;
    let configured: BaseUrl = format!("http://{address}/v1").parse().unwrap();
    let other: BaseUrl = format!("http://{address}/v2").parse().unwrap();
    let error = Egress::new(policy(&configured)).send(LONG, post(&other)).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden(_)), "{error}");
    assert!(tokio::time::timeout(Duration::from_millis(50), listener.accept()).await.is_err());
}

#[tokio::test]
async fn a_public_name_that_leads_to_this_machine_or_to_metadata_is_refused() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("https://api.example.com:{}/v1", address.port()).parse().unwrap();
    for hidden in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1"] {
        let lookup = Fixed(vec![hidden.parse().unwrap()], Arc::default());
        let error = Egress::with_lookup(policy(&base), Arc::new(lookup)).send(LONG, post(&base)).await.unwrap_err();
        assert_eq!(error, Error::Address { name: "api.example.com".to_owned(), address: hidden.parse().unwrap() });
    }
    assert!(tokio::time::timeout(Duration::from_millis(50), listener.accept()).await.is_err());
}

#[tokio::test]
async fn a_private_address_is_reached_once_the_operator_names_it() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("https://api.example.com:{}/v1", address.port()).parse().unwrap();
    let policy = Policy { addresses: vec![address.ip()], ..policy(&base) };
    let egress = Egress::with_lookup(policy, Arc::new(Fixed(vec![address.ip()], Arc::default())));
    let server = async { drop(listener.accept().await.unwrap()) };
    let (error, ()) = tokio::join!(egress.send(LONG, post(&base)), server);
    // It got as far as the handshake, which the test's server does not answer.
    assert!(matches!(error, Err(Error::Connect { .. })), "{error:?}");
}

#[tokio::test]
async fn the_name_of_this_machine_leads_nowhere_else() {
    let base: BaseUrl = "http://localhost:1/v1".parse().unwrap();
    let lookup = Fixed(vec!["93.184.215.14".parse().unwrap()], Arc::default());
    let error = Egress::with_lookup(policy(&base), Arc::new(lookup)).send(LONG, post(&base)).await.unwrap_err();
    assert!(matches!(error, Error::Address { .. }), "{error}");
}

#[tokio::test]
async fn every_call_looks_the_name_up_and_connects_anew() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://localhost:{}/v1", address.port()).parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let egress = Egress::with_lookup(policy(&base), Arc::new(Fixed(vec![address.ip()], Arc::clone(&asked))));
    for calls in 1..=2 {
        let server = async {
            let (mut stream, _) = accept(&listener).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        };
        let (response, ()) = tokio::join!(egress.send(LONG, post(&base)), server);
        assert_eq!(whole(response.unwrap()).await.unwrap(), "ok");
        assert_eq!(asked.load(Ordering::SeqCst), calls);
    }
}

#[tokio::test]
async fn a_redirect_is_reported_and_not_followed() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let server = async {
        let (mut stream, _) = accept(&listener).await;
        stream
            .write_all(b"HTTP/1.1 307 Moved\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
    };
    let (response, ()) = tokio::join!(egress.send(LONG, post(&base)), server);
    let response = response.unwrap();
    assert_eq!((response.status, response.location.as_deref()), (307, Some("http://169.254.169.254/")));
}

#[tokio::test]
async fn a_response_that_is_too_long_is_cut_off() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let server = async {
        let (mut stream, _) = accept(&listener).await;
        // The client may close before all is written.
        let _closed = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let _closed = stream.write_all(&[b'x'; 5000]).await;
    };
    let (response, ()) = tokio::join!(egress.send(LONG, post(&base)), server);
    assert!(matches!(whole(response.unwrap()).await, Err(Error::TooLarge { limit: 1000, .. })));
}

#[tokio::test]
async fn silence_and_a_broken_connection_are_told_apart() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let silent = async {
        let (mut stream, _) = accept(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").await.unwrap();
        stream
    };
    let (response, held) = tokio::join!(egress.send(LONG, post(&base)), silent);
    assert!(matches!(whole(response.unwrap()).await, Err(Error::Idle { .. })));
    drop(held);

    let broken = async {
        let (mut stream, _) = accept(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").await.unwrap();
    };
    let (response, ()) = tokio::join!(egress.send(LONG, post(&base)), broken);
    assert!(matches!(whole(response.unwrap()).await, Err(Error::Broken { .. })));
}

#[tokio::test]
async fn a_response_has_to_begin_in_time_whatever_comes_before_it() {
    for before in ["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nx: y\r\n"] {
        let (listener, address) = listener().await;
        let base: BaseUrl = format!("http://{address}").parse().unwrap();
        let mut policy = policy(&base);
        policy.limits.first_byte = Duration::from_millis(300);
        let egress = Egress::new(policy);
        let server = async {
            let (mut stream, _) = accept(&listener).await;
            let _closed = stream.write_all(before.as_bytes()).await;
            stream
        };
        let (response, held) = tokio::join!(egress.send(LONG, post(&base)), server);
        assert!(matches!(response, Err(Error::Silent { .. })), "{response:?}");
        drop(held);
    }
}

#[test]
fn a_server_says_in_seconds_or_by_a_date_for_how_long_to_leave_it_alone() {
    let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    for (after, left) in [
        ("0", Some(0)),
        (" 120 ", Some(120)),
        ("99999999999999999999", Some(u32::MAX)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
        ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
        ("Sun Nov  6 08:49:37 1994", Some(0)),
        ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
    ] {
        assert_eq!(seconds(after, now), left, "{after}");
    }
    assert_eq!(seconds("Sun, 06 Nov 1994 08:49:47 GMT", None), None, "a date alone says nothing without a clock");
    assert_eq!(seconds("7", Some("yesterday")), Some(7));
}

#[tokio::test]
async fn a_closed_port_is_told_with_its_host() {
    let (listener, address) = listener().await;
    drop(listener);
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    match Egress::new(policy(&base)).send(LONG, post(&base)).await {
        Err(Error::Connect { host, why }) => {
            assert_eq!(host, address.to_string());
            assert!(why.contains("refused"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dropping_the_response_closes_the_connection() {
    let (listener, address) = listener().await;
    let base: BaseUrl = format!("http://{address}").parse().unwrap();
    let egress = Egress::new(policy(&base));
    let server = async {
        let (mut stream, _) = accept(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nabc").await.unwrap();
        stream
    };
    let (response, mut stream) = tokio::join!(egress.send(LONG, post(&base)), server);
    drop(response);
    let mut rest = [0; 8];
    let read = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut rest)).await.unwrap();
    assert_eq!(read.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_and_the_target_is_not_looked_up() {
    let (listener, address) = listener().await;
    let base: BaseUrl = "https://api.example.com/v1".parse().unwrap();
    let policy = Policy { proxy: Some(format!("http://{address}").parse().unwrap()), ..policy(&base) };
    let asked = Arc::new(AtomicUsize::new(0));
    let egress = Egress::with_lookup(policy, Arc::new(Fixed(Vec::new(), Arc::clone(&asked))));
    let server = async {
        let (_stream, request) = accept(&listener).await;
        request
    };
    let (response, request) = tokio::join!(egress.send(LONG, post(&base)), server);
    assert!(response.is_err());
    assert!(request.starts_with("CONNECT api.example.com:443 HTTP/1.1\r\n"), "{request}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
