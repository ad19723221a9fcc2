//! A connection to the server with a timeout for every query.
//!
//! Server-side timeouts do not help when a server is silent or a network drops packets. So every query has a timeout here,
//! and a silent connection is not used again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::time::Duration;

use proem_core::limit::{
    POSTGRES_ANSWER_TIME_MAX, POSTGRES_CANCEL_TIME_MAX, POSTGRES_LOCK_SECONDS_MAX,
    POSTGRES_PAUSE_SECONDS_MAX, POSTGRES_STATEMENT_SECONDS_MAX,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Client, Config, Error, Row, SimpleQueryMessage, Socket};

use super::{Failure, Value};

/// Begins a transaction with settings that override those of the database: it is durable when it is acknowledged, its
/// second statement sees what others have committed since the first, and it does not hang.
static BEGIN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on; \
         SET LOCAL statement_timeout = '{POSTGRES_STATEMENT_SECONDS_MAX}s'; \
         SET LOCAL lock_timeout = '{POSTGRES_LOCK_SECONDS_MAX}s'; \
         SET LOCAL idle_in_transaction_session_timeout = '{POSTGRES_PAUSE_SECONDS_MAX}s'"
    )
});

/// A future that sends and receives the bytes of a connection.
type Transport = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Asks the server to cancel the query of a connection, through another connection.
type Cancel = Box<dyn Fn(CancelToken) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One connection. Its bytes move while a caller waits for an answer.
pub(super) struct Link {
    time_max: Duration,
    runtime: Runtime,
    client: Client,
    /// `None` once the connection has ended.
    transport: Option<Transport>,
    cancel: Cancel,
}

impl Link {
    /// Connects within `connect_time` for each address of the server, or within [`POSTGRES_ANSWER_TIME_MAX`] if that is
    /// longer. No query on this connection may take longer than [`POSTGRES_ANSWER_TIME_MAX`].
    pub(super) fn new<T>(config: &Config, tls: T, connect_time: Duration) -> Result<Self, Failure>
    where
        T: MakeTlsConnect<
                Socket,
                Stream: Send + 'static,
                TlsConnect: TlsConnect<Socket, Future: Send> + Send,
            >,
        T: Clone + Send + 'static,
    {
        Self::connect_within(config, tls, connect_time.max(POSTGRES_ANSWER_TIME_MAX))
    }

    /// Connects within `time_max`, which is also the limit for every answer, up to [`POSTGRES_ANSWER_TIME_MAX`].
    fn connect_within<T>(config: &Config, tls: T, time_max: Duration) -> Result<Self, Failure>
    where
        T: MakeTlsConnect<
                Socket,
                Stream: Send + 'static,
                TlsConnect: TlsConnect<Socket, Future: Send> + Send,
            >,
        T: Clone + Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
        let connected = runtime.block_on(async { timeout(time_max, config.connect(tls.clone())).await });
        let Ok(Ok((client, connection))) = connected else {
            // Do not wait for a lookup of the host name.
            runtime.shutdown_background();
            return Err(connected
                .map_or(Failure::Silent, |refused| refused.err().map_or(Failure::Silent, Into::into)));
        };
        let cancel: Cancel = Box::new(move |token| {
            let tls = tls.clone();
            // The result does not matter: the connection is closed in any case.
            Box::pin(async move { drop(token.cancel_query(tls).await) })
        });
        Ok(Self {
            time_max: time_max.min(POSTGRES_ANSWER_TIME_MAX),
            runtime,
            client,
            transport: Some(Box::pin(connection)),
            cancel,
        })
    }

    /// Tells whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.transport.is_none() || self.client.is_closed()
    }

    /// Runs work in a transaction.
    pub(super) fn transact<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.transact_if(work, |_| true)
    }

    /// Runs work in a transaction, and rolls it back unless `is_kept` approves the result.
    pub(super) fn transact_if<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, Failure>,
        is_kept: impl Fn(&T) -> bool,
    ) -> Result<T, Failure> {
        let begun = self.batch_execute(&BEGIN);
        if begun.is_err() {
            self.close();
        }
        begun?;
        let done = work(self);
        let ended = self.batch_execute(if done.as_ref().is_ok_and(is_kept) { "COMMIT" } else { "ROLLBACK" });
        if ended.is_err() {
            self.close();
        }
        done.and_then(|done| ended.map(|()| done))
    }

    /// Closes the connection, so that no other caller uses it in the middle of a transaction.
    fn close(&mut self) {
        self.transport = None;
    }

    pub(super) fn query_typed(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Failure> {
        self.wait_for(async |client: &Client| client.query_typed(sql, values).await)
    }

    pub(super) fn query_typed_opt(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Failure> {
        self.wait_for(async |client: &Client| client.query_typed_opt(sql, values).await)
    }

    pub(super) fn query_typed_one(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Row, Failure> {
        self.wait_for(async |client: &Client| client.query_typed_one(sql, values).await)
    }

    pub(super) fn execute_typed(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        self.wait_for(async |client: &Client| client.execute_typed(sql, values).await)
    }

    pub(super) fn simple_query(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Failure> {
        self.wait_for(async |client: &Client| client.simple_query(sql).await)
    }

    pub(super) fn batch_execute(&mut self, sql: &str) -> Result<(), Failure> {
        self.wait_for(async |client: &Client| client.batch_execute(sql).await)
    }

    /// Sends a query, and waits for the answer or the timeout.
    fn wait_for<T>(&mut self, query: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Result<T, Failure> {
        let Self { time_max, runtime, client, transport, .. } = self;
        let answer = async {
            let mut query = pin!(query(client));
            poll_fn(|context| {
                // When the connection ends, so does the query.
                if transport.as_mut().is_some_and(|transport| transport.as_mut().poll(context).is_ready()) {
                    *transport = None;
                }
                query.as_mut().poll(context)
            })
            .await
        };
        let answered = runtime.block_on(async { timeout(*time_max, answer).await });
        if let Ok(answer) = answered {
            return Ok(answer?);
        }
        // Cancel the query: PostgreSQL does not notice a lost client until the query ends.
        let cancelled = (self.cancel)(self.client.cancel_token());
        drop(self.runtime.block_on(async { timeout(POSTGRES_CANCEL_TIME_MAX, cancelled).await }));
        self.close();
        Err(Failure::Silent)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use tokio_postgres::NoTls;

    use super::*;

    /// A short timeout for answers that never come.
    const SHORT: Duration = Duration::from_millis(50);

    fn config(port: u16) -> Config {
        format!("postgres://user@127.0.0.1:{port}/x").parse().expect("it is a URL")
    }

    /// Row S6.
    #[test]
    fn a_server_that_says_nothing_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = silent.local_addr().expect("it has one").port();
        assert!(matches!(Link::connect_within(&config(port), NoTls, SHORT), Err(Failure::Silent)));
    }

    /// Copies bytes in one direction until either end closes.
    fn pass(mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
    }

    /// Row S6: a connection that no longer delivers answers, although both ends are alive.
    #[test]
    fn a_connection_that_fell_silent_is_not_asked_again() {
        let Some(server) = proem_testkit::PostgresServer::start() else { return };
        let whole: Config = server.database("silent").parse().expect("it is a URL");
        let port = *whole.get_ports().first().expect("it has a port");
        let between = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let own_port = between.local_addr().expect("it has one").port();
        let passing = std::thread::spawn(move || {
            let (near, _) = between.accept().expect("a client connects");
            let far = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
            let (near_again, far_again) =
                (near.try_clone().expect("it is open"), far.try_clone().expect("it is open"));
            let back = far.try_clone().expect("it is open");
            std::thread::spawn(move || pass(near, far));
            std::thread::spawn(move || pass(far_again, near_again));
            back
        });
        let mut config = Config::new();
        config.user(whole.get_user().expect("it has a user")).dbname("silent");
        config.host("127.0.0.1").port(own_port);
        let mut link = Link::new(&config, NoTls, POSTGRES_ANSWER_TIME_MAX).ok().expect("it answers");
        let back = passing.join().expect("it passes bytes");
        assert!(link.batch_execute("SELECT 1").is_ok());
        link.time_max = SHORT;
        assert!(matches!(link.batch_execute("SELECT pg_sleep(600)"), Err(Failure::Silent)));
        assert!(link.is_closed());
        assert!(link.batch_execute("SELECT 1").is_err(), "it is used again");
        drop(back.shutdown(Shutdown::Both));
    }
}
