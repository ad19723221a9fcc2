//! Places for connections: which of them have shown the token, and which one is closed when a new one needs room.
//!
//! A connection is a stranger until one of its requests passes the guard. Strangers have only a part of the places, and one
//! address has only a part of those. A stranger that needs a place takes that of another stranger, never that of a client
//! that has shown the token: the oldest one of the address that has most. So a client that sends its request at once is
//! served, however many silent connections there are and however often they are opened again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proem_core::limit::{ADDRESS_CONNECTIONS_MAX, CONNECTIONS_MAX};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The number of connections there may be, in all and by address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connections {
    /// Most connections at once; the system may allow fewer.
    pub most: usize,
    /// Most connections of one address that have not shown the token; `None` for as many as there is room for. Loopback
    /// addresses and proxies have no such limit: many clients share them.
    pub per_address_max: Option<usize>,
    /// Addresses of proxies, which connect for many clients.
    pub proxies: Vec<IpAddr>,
    /// Closes connections that have not shown the token when a new one needs their place. Otherwise new ones wait.
    pub makes_room: bool,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            most: CONNECTIONS_MAX,
            per_address_max: Some(ADDRESS_CONNECTIONS_MAX),
            proxies: Vec::new(),
            makes_room: true,
        }
    }
}

/// Longest stay of a stranger once half of the strangers' places are taken.
const PRESSED_TIME_MAX: Duration = Duration::from_secs(5);

/// Most strangers that are closed for their age when one comes, so that no newcomer waits for the clearing of all.
const AGED_MAX: usize = 4;

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    strangers_max: usize,
    limits: Connections,
    strangers: Mutex<Strangers>,
}

/// The connections that have not shown the token.
#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Waiting>,
    /// Those of each address, oldest first.
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Waiting {
    address: IpAddr,
    since: Instant,
    close: Arc<Notify>,
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    address: IpAddr,
    number: u64,
    is_known: AtomicBool,
    close: Arc<Notify>,
}

impl Places {
    /// Places for at most `most` connections, which the system's descriptors allow.
    pub(crate) fn new(limits: &Connections, most: usize) -> Arc<Self> {
        // A quarter is kept for clients that have shown the token.
        let strangers_max = (most - most / 4).max(1);
        Arc::new(Self { most, strangers_max, limits: limits.clone(), strangers: Mutex::default() })
    }

    /// Takes a connection of `address` in, when `taken` places are in use; tells others to close if it needs theirs.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, taken: usize) -> Place {
        let mut strangers = self.lock();
        let group = group(address);
        if self.limits.makes_room {
            self.make_room(&mut strangers, group, taken);
        }
        let (number, close) = (strangers.next, Arc::new(Notify::new()));
        strangers.next += 1;
        let waiting = Waiting { address: group, since: Instant::now(), close: Arc::clone(&close) };
        strangers.all.insert(number, waiting);
        strangers.by_address.entry(group).or_default().insert(number);
        Place { places: Arc::clone(self), address, number, is_known: AtomicBool::new(false), close }
    }

    /// Closes what must go for one more connection of `address`.
    fn make_room(&self, strangers: &mut Strangers, address: IpAddr, taken: usize) {
        let of_address = strangers.by_address.get(&address).map_or(0, BTreeSet::len);
        if self.own_max(address).is_some_and(|most| of_address >= most) {
            strangers.close_oldest_of(address);
        } else if strangers.all.len() >= self.strangers_max || taken >= self.most {
            strangers.close_one();
        }
        if strangers.all.len() > self.strangers_max / 2 {
            strangers.close_aged(Instant::now());
        }
    }

    /// The most strangers of one address; `None` where many clients share it.
    fn own_max(&self, address: IpAddr) -> Option<usize> {
        let is_shared =
            address.is_loopback() || self.limits.proxies.iter().any(|proxy| group(*proxy) == address);
        self.limits.per_address_max.filter(|_| !is_shared)
    }

    fn lock(&self) -> MutexGuard<'_, Strangers> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Strangers {
    /// Closes the oldest connection of the address that has most of them; of two such addresses, that with the older one.
    fn close_one(&mut self) {
        let rank = |numbers: &BTreeSet<u64>| (numbers.len(), numbers.first().copied().map(Reverse));
        let largest = self.by_address.iter().max_by_key(|(_, numbers)| rank(numbers));
        if let Some(address) = largest.map(|(address, _)| *address) {
            self.close_oldest_of(address);
        }
    }

    fn close_oldest_of(&mut self, address: IpAddr) {
        let oldest = self.by_address.get(&address).and_then(BTreeSet::first);
        if let Some(number) = oldest.copied() {
            self.close(number);
        }
    }

    /// Closes a few of those that have been silent for long.
    fn close_aged(&mut self, now: Instant) {
        for _ in 0..AGED_MAX {
            let Some((number, waiting)) = self.all.first_key_value() else { return };
            if now.saturating_duration_since(waiting.since) < PRESSED_TIME_MAX {
                return;
            }
            let number = *number;
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(waiting) = self.remove(number) {
            // Remembered, in case the waiter comes later.
            waiting.close.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.all.remove(&number)?;
        if let Some(numbers) = self.by_address.get_mut(&waiting.address) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_address.remove(&waiting.address);
            }
        }
        Some(waiting)
    }
}

impl Place {
    /// Keeps the place for as long as the connection lasts: its client has shown the token.
    pub(crate) fn keep(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.places.lock().remove(self.number);
        }
    }

    /// Returns the address of the other end.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Waits until the place is needed for another connection.
    pub(crate) async fn needed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.number);
    }
}

/// The address by which connections are counted. One client of IPv6 usually has a whole network of 64 bits, and an address
/// of IPv4 has two spellings.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [first, second, third, fourth, ..] = address.segments();
            Ipv6Addr::new(first, second, third, fourth, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(most: usize, per_address_max: Option<usize>) -> Arc<Places> {
        let proxies = vec![address("192.0.2.9")];
        Places::new(&Connections { most, per_address_max, proxies, makes_room: true }, most)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// The places that are needed for others, by index.
    fn closed(held: &[Place]) -> Vec<usize> {
        let is_stranger = |place: &Place| place.places.lock().all.contains_key(&place.number);
        let is_closed = |place: &Place| !place.is_known.load(Ordering::Relaxed) && !is_stranger(place);
        (0..held.len()).filter(|index| is_closed(&held[*index])).collect()
    }

    /// Row H11.
    #[test]
    fn the_oldest_stranger_makes_room_and_a_known_client_never() {
        let places = places(8, None);
        let enter = |taken: usize| places.enter(address("127.0.0.1"), taken);
        let mut held: Vec<Place> = (0..6).map(enter).collect();
        assert_eq!(closed(&held), [0_usize; 0], "control: there is room for six");
        held[0].keep();
        held.push(enter(6));
        assert_eq!(closed(&held), [0_usize; 0], "one of them is no stranger any more");
        held.push(enter(7));
        held.push(enter(8));
        assert_eq!(closed(&held), [1, 2], "the oldest go, but for the one that is known");
    }

    /// Row H11.
    #[test]
    fn an_address_with_many_connections_makes_room_for_those_with_few() {
        let places = places(8, None);
        let mut held = vec![places.enter(address("198.51.100.1"), 0)];
        held.extend((1..6).map(|taken| places.enter(address("203.0.113.7"), taken)));
        held.push(places.enter(address("203.0.113.7"), 6));
        held.push(places.enter(address("192.0.2.1"), 7));
        assert_eq!(closed(&held), [1, 2], "the only one of its address stays, though it is the oldest");
    }

    /// Row H11.
    #[test]
    fn an_address_has_a_limit_unless_many_share_it() {
        for (peer, is_limited) in [
            ("203.0.113.7", true),
            ("::ffff:203.0.113.7", true),
            ("2001:db8::7", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("192.0.2.9", false),
        ] {
            let places = places(100, Some(2));
            let held: Vec<Place> = (0..5).map(|taken| places.enter(address(peer), taken)).collect();
            let expected: &[usize] = if is_limited { &[0, 1, 2] } else { &[] };
            assert_eq!(closed(&held), expected, "{peer}");
        }
        let places = places(100, Some(2));
        let held: Vec<Place> =
            (0..5).map(|taken| places.enter(address(&format!("2001:db8::{taken}")), taken)).collect();
        assert_eq!(closed(&held), [0, 1, 2], "one network of IPv6 counts as one address");
    }

    /// Row H11.
    #[tokio::test(start_paused = true)]
    async fn under_pressure_strangers_stay_for_a_shorter_time() {
        for (held_before, expected) in [(3, 0), (4, 4)] {
            let places = places(8, None);
            let enter = |taken: usize| places.enter(address("127.0.0.1"), taken);
            let mut held: Vec<Place> = (0..held_before).map(enter).collect();
            tokio::time::advance(PRESSED_TIME_MAX).await;
            held.push(enter(held_before));
            assert_eq!(closed(&held).len(), expected, "{held_before} of six places were taken");
        }
    }

    #[test]
    fn places_are_given_back() {
        let places = places(8, None);
        drop((0..100).map(|_| places.enter(address("127.0.0.1"), 0)).collect::<Vec<_>>());
        let strangers = places.lock();
        assert!(strangers.all.is_empty() && strangers.by_address.is_empty());
    }
}
