//! A connection to the server, on which nobody waits for longer than they should.
//!
//! The server's own limits do not help against a server, or a network, that says nothing at all. So every question has
//! a limit here, and a connection that kept silent is not asked again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Client, Config, Error, Row, SimpleQueryMessage, Socket};

use super::{Failure, Value};

/// How long an answer may take: in a transaction a little longer than the server allows itself, so that its own words come
/// first, and so short that a request which asks three times still gets its answer.
pub(super) const TIME_MAX: Duration = Duration::from_secs(9);

/// How long it may take to ask a server to end what it does.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(1);

/// Settings of one transaction, whatever the database's own are: it must be durable when it is acknowledged, must see in
/// its second statement what somebody else has written since the first, and must not hang.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on; \
    SET LOCAL statement_timeout = '8s'; SET LOCAL lock_timeout = '7s'; \
    SET LOCAL idle_in_transaction_session_timeout = '20s'";

/// What moves the bytes of a connection.
type Moving = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Asks the server, on a way of its own, to end what it does for a connection.
type Cancel = Box<dyn Fn(CancelToken) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One connection, with what moves its bytes while somebody waits.
pub(super) struct Link {
    time_max: Duration,
    runtime: Runtime,
    client: Client,
    /// `None` once it has ended.
    connection: Option<Moving>,
    cancel: Cancel,
}

impl Link {
    /// Connects, within `connect_time` for each address of the server or [`TIME_MAX`], if that is longer. Nothing on this
    /// connection may take longer than [`TIME_MAX`].
    pub(super) fn new<T>(config: &Config, tls: T, connect_time: Duration) -> Result<Self, Failure>
    where
        T: MakeTlsConnect<
                Socket,
                Stream: Send + 'static,
                TlsConnect: TlsConnect<Socket, Future: Send> + Send,
            >,
        T: Clone + Send + 'static,
    {
        Self::within(config, tls, connect_time.max(TIME_MAX))
    }

    /// Connects within `time_max`, which then holds for every answer up to [`TIME_MAX`].
    fn within<T>(config: &Config, tls: T, time_max: Duration) -> Result<Self, Failure>
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
            // A name that is still being looked up is not waited for.
            runtime.shutdown_background();
            return Err(connected
                .map_or(Failure::Silent, |refused| refused.err().map_or(Failure::Silent, Into::into)));
        };
        let cancel: Cancel = Box::new(move |token| {
            let tls = tls.clone();
            // Whether it arrived nobody can tell; the connection is given up in any case.
            Box::pin(async move { drop(token.cancel_query(tls).await) })
        });
        Ok(Self {
            time_max: time_max.min(TIME_MAX),
            runtime,
            client,
            connection: Some(Box::pin(connection)),
            cancel,
        })
    }

    /// Tells whether nothing can be asked any more.
    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_none() || self.client.is_closed()
    }

    /// Runs work in a transaction.
    pub(super) fn transact<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let begun = self.batch_execute(BEGIN);
        if begun.is_err() {
            self.forsake();
        }
        begun?;
        let done = work(self);
        let ended = self.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        if ended.is_err() {
            self.forsake();
        }
        done.and_then(|done| ended.map(|()| done))
    }

    /// Gives the connection up: whatever it is in the middle of, nobody else is to go on with.
    fn forsake(&mut self) {
        self.connection = None;
    }

    pub(super) fn query_typed(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Failure> {
        self.ask(async |client: &Client| client.query_typed(sql, values).await)
    }

    pub(super) fn query_typed_opt(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Failure> {
        self.ask(async |client: &Client| client.query_typed_opt(sql, values).await)
    }

    pub(super) fn query_typed_one(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Row, Failure> {
        self.ask(async |client: &Client| client.query_typed_one(sql, values).await)
    }

    pub(super) fn execute_typed(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        self.ask(async |client: &Client| client.execute_typed(sql, values).await)
    }

    pub(super) fn simple_query(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Failure> {
        self.ask(async |client: &Client| client.simple_query(sql).await)
    }

    pub(super) fn batch_execute(&mut self, sql: &str) -> Result<(), Failure> {
        self.ask(async |client: &Client| client.batch_execute(sql).await)
    }

    /// Asks, and moves bytes until there is an answer or the time is over.
    fn ask<T>(&mut self, question: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Result<T, Failure> {
        let Self { time_max, runtime, client, connection, .. } = self;
        let answer = async {
            let mut asked = pin!(question(client));
            poll_fn(|context| {
                // When the connection ends, so does the question.
                if connection.as_mut().is_some_and(|moving| moving.as_mut().poll(context).is_ready()) {
                    *connection = None;
                }
                asked.as_mut().poll(context)
            })
            .await
        };
        let answered = runtime.block_on(async { timeout(*time_max, answer).await });
        if let Ok(answer) = answered {
            return Ok(answer?);
        }
        // A server that lives must not go on for nobody: it would not notice before it is done.
        let cancelled = (self.cancel)(self.client.cancel_token());
        drop(self.runtime.block_on(async { timeout(CANCEL_TIME_MAX, cancelled).await }));
        self.forsake();
        Err(Failure::Silent)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use tokio_postgres::NoTls;

    use super::*;

    /// Far less than a busy machine needs for an answer that never comes.
    const SHORT: Duration = Duration::from_millis(50);

    fn config(port: u16) -> Config {
        format!("postgres://somebody@127.0.0.1:{port}/x").parse().expect("it is a URL")
    }

    /// Row S6.
    #[test]
    fn a_server_that_says_nothing_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = silent.local_addr().expect("it has one").port();
        assert!(matches!(Link::within(&config(port), NoTls, SHORT), Err(Failure::Silent)));
    }

    /// Passes bytes in one direction until either end is done.
    fn pass(mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
    }

    /// Row S6: a connection through which nothing comes back any more, although both ends live.
    #[test]
    fn a_connection_that_fell_silent_is_not_asked_again() {
        let Some(server) = proem_testkit::PostgresServer::start() else { return };
        let whole: Config = server.database("silent").parse().expect("it is a URL");
        let port = *whole.get_ports().first().expect("it has a port");
        let between = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let own_port = between.local_addr().expect("it has one").port();
        let passing = std::thread::spawn(move || {
            let (near, _) = between.accept().expect("somebody connects");
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
        let mut link = Link::new(&config, NoTls, TIME_MAX).ok().expect("it answers");
        let back = passing.join().expect("it passes bytes");
        assert!(link.batch_execute("SELECT 1").is_ok());
        link.time_max = SHORT;
        assert!(matches!(link.batch_execute("SELECT pg_sleep(600)"), Err(Failure::Silent)));
        assert!(link.is_closed());
        assert!(link.batch_execute("SELECT 1").is_err(), "it is asked again");
        drop(back.shutdown(Shutdown::Both));
    }
}
