//! A bare reverse proxy of hyper, the floor of the gateway's measurements: `bare_hyper LISTEN UPSTREAM`.

use std::convert::Infallible;
use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(listen), Some(upstream)) = (words.next(), words.next()) else {
        return Err("usage: bare_hyper LISTEN UPSTREAM".into());
    };
    let listener = TcpListener::bind(listen.parse::<SocketAddr>()?).await?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Incoming>();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, upstream) = (client.clone(), upstream.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (client, upstream) = (client.clone(), upstream.clone());
            async move {
                let target = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
                if let Ok(uri) = format!("http://{upstream}{target}").parse::<Uri>() {
                    *request.uri_mut() = uri;
                }
                if let Ok(host) = HeaderValue::from_str(&upstream) {
                    request.headers_mut().insert(HOST, host);
                }
                client.request(request).await
            }
        });
        tokio::spawn(async move {
            // A connection that fails concerns its client alone.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            Ok::<(), Infallible>(())
        });
    }
}
