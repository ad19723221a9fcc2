//! Slots for connections, and the choice of the connection that is closed when a new one needs a slot.
//!
//! A connection is a stranger until one of its requests passes the guard. Strangers may use only a part of the slots, and
//! each address only a part of these. A new connection that needs a slot takes that of a stranger: the oldest connection
//! of the address with the most connections. It never takes the slot of an authenticated client. A client that sends its
//! request at once is therefore served, regardless of the number of idle connections and of new attempts to open them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proem_core::limit::{ADDRESS_CONNECTIONS_MAX, CONNECTIONS_MAX};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The limits on connections, in total and per address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections; the system may allow fewer.
    pub most: usize,
    /// Maximum number of connections per address without a valid token; `None` for no limit. Loopback addresses and
    /// proxies are exempt, because many clients share them.
    pub per_address_max: Option<usize>,
    /// Addresses of proxies, which connect for many clients.
    pub proxies: Vec<IpAddr>,
    /// Closes connections without a valid token when a new one needs a slot. Otherwise the new one waits.
    pub makes_room: bool,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: CONNECTIONS_MAX,
            per_address_max: Some(ADDRESS_CONNECTIONS_MAX),
            proxies: Vec::new(),
            makes_room: true,
        }
    }
}

/// Maximum age of a stranger's connection while more than half of the strangers' slots are taken.
const PRESSED_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum number of old connections that are closed for one new connection, so that it does not wait for all of them.
const AGED_MAX: usize = 4;

/// All slots of the server.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    most: usize,
    strangers_max: usize,
    limits: ConnectionLimits,
    strangers: Mutex<Strangers>,
}

/// The connections without a valid token.
#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    /// The connections by number, oldest first.
    all: BTreeMap<u64, Stranger>,
    /// The numbers of the connections of each address.
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    since: Instant,
    close: Arc<Notify>,
}

/// The slot of one connection, released when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    address: IpAddr,
    number: u64,
    is_authenticated: AtomicBool,
    close: Arc<Notify>,
}

impl ConnectionSlots {
    /// Creates slots for at most `most` connections, which is what the system's descriptors allow.
    pub(crate) fn new(limits: &ConnectionLimits, most: usize) -> Arc<Self> {
        // A quarter is reserved for authenticated clients.
        let strangers_max = (most - most / 4).max(1);
        Arc::new(Self { most, strangers_max, limits: limits.clone(), strangers: Mutex::default() })
    }

    /// Adds a connection of `address` while `taken` slots are in use, and closes others if it needs their slot.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, taken: usize) -> ConnectionSlot {
        let mut strangers = self.lock();
        let group = group(address);
        if self.limits.makes_room {
            self.make_room(&mut strangers, group, taken);
        }
        let (number, close) = (strangers.next, Arc::new(Notify::new()));
        strangers.next += 1;
        let stranger = Stranger { address: group, since: Instant::now(), close: Arc::clone(&close) };
        strangers.all.insert(number, stranger);
        strangers.by_address.entry(group).or_default().insert(number);
        let is_authenticated = AtomicBool::new(false);
        ConnectionSlot { slots: Arc::clone(self), address, number, is_authenticated, close }
    }

    /// Closes the connections that one more connection of `address` replaces.
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

    /// Returns the maximum number of strangers of an address, or `None` if many clients share it.
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
    /// Closes the oldest connection of the address with the most connections. If several addresses have the same number,
    /// the one with the oldest connection is chosen.
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

    /// Closes a few connections that are older than the limit.
    fn close_aged(&mut self, now: Instant) {
        for _ in 0..AGED_MAX {
            let Some((number, stranger)) = self.all.first_key_value() else { return };
            if now.saturating_duration_since(stranger.since) < PRESSED_TIME_MAX {
                return;
            }
            let number = *number;
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(stranger) = self.remove(number) {
            // The notification is stored if the connection does not wait for it yet.
            stranger.close.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Stranger> {
        let stranger = self.all.remove(&number)?;
        if let Some(numbers) = self.by_address.get_mut(&stranger.address) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_address.remove(&stranger.address);
            }
        }
        Some(stranger)
    }
}

impl ConnectionSlot {
    /// Keeps the slot until the connection ends, because a request of its client passed the guard.
    pub(crate) fn keep(&self) {
        if !self.is_authenticated.swap(true, Ordering::Relaxed) {
            self.slots.lock().remove(self.number);
        }
    }

    /// Returns the address of the client, or of the proxy that connected for it.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Waits until another connection needs the slot.
    pub(crate) async fn needed(&self) {
        self.close.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.lock().remove(self.number);
    }
}

/// Returns the address under which a connection is counted: the /64 network of an IPv6 address, because one client
/// usually has all of it, and the IPv4 address of an IPv4-mapped one.
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

    fn slots(most: usize, per_address_max: Option<usize>) -> Arc<ConnectionSlots> {
        let proxies = vec![address("192.0.2.9")];
        ConnectionSlots::new(&ConnectionLimits { most, per_address_max, proxies, makes_room: true }, most)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Returns the indices of the slots that others need.
    fn closed(held: &[ConnectionSlot]) -> Vec<usize> {
        let is_stranger = |slot: &ConnectionSlot| slot.slots.lock().all.contains_key(&slot.number);
        let is_closed =
            |slot: &ConnectionSlot| !slot.is_authenticated.load(Ordering::Relaxed) && !is_stranger(slot);
        (0..held.len()).filter(|index| is_closed(&held[*index])).collect()
    }

    /// Row H11.
    #[test]
    fn the_oldest_stranger_makes_room_and_a_known_client_never() {
        let slots = slots(8, None);
        let enter = |taken: usize| slots.enter(address("127.0.0.1"), taken);
        let mut held: Vec<ConnectionSlot> = (0..6).map(enter).collect();
        assert_eq!(closed(&held), [0_usize; 0], "control: there is room for six");
        held[0].keep();
        held.push(enter(6));
        assert_eq!(closed(&held), [0_usize; 0], "one of them is authenticated");
        held.push(enter(7));
        held.push(enter(8));
        assert_eq!(closed(&held), [1, 2], "the oldest are closed, except the authenticated one");
    }

    /// Row H11.
    #[test]
    fn an_address_with_many_connections_makes_room_for_those_with_few() {
        let slots = slots(8, None);
        let mut held = vec![slots.enter(address("198.51.100.1"), 0)];
        held.extend((1..6).map(|taken| slots.enter(address("203.0.113.7"), taken)));
        held.push(slots.enter(address("203.0.113.7"), 6));
        held.push(slots.enter(address("192.0.2.1"), 7));
        assert_eq!(closed(&held), [1, 2], "the only one of its address stays, although it is the oldest");
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
            let slots = slots(100, Some(2));
            let held: Vec<ConnectionSlot> = (0..5).map(|taken| slots.enter(address(peer), taken)).collect();
            let expected: &[usize] = if is_limited { &[0, 1, 2] } else { &[] };
            assert_eq!(closed(&held), expected, "{peer}");
        }
        let slots = slots(100, Some(2));
        let held: Vec<ConnectionSlot> =
            (0..5).map(|taken| slots.enter(address(&format!("2001:db8::{taken}")), taken)).collect();
        assert_eq!(closed(&held), [0, 1, 2], "one network of IPv6 counts as one address");
    }

    /// Row H11.
    #[tokio::test(start_paused = true)]
    async fn under_pressure_strangers_stay_for_a_shorter_time() {
        for (held_before, expected) in [(3, 0), (4, 4)] {
            let slots = slots(8, None);
            let enter = |taken: usize| slots.enter(address("127.0.0.1"), taken);
            let mut held: Vec<ConnectionSlot> = (0..held_before).map(enter).collect();
            tokio::time::advance(PRESSED_TIME_MAX).await;
            held.push(enter(held_before));
            assert_eq!(closed(&held).len(), expected, "{held_before} of six slots were taken");
        }
    }

    #[test]
    fn slots_are_released() {
        let slots = slots(8, None);
        drop((0..100).map(|_| slots.enter(address("127.0.0.1"), 0)).collect::<Vec<_>>());
        let strangers = slots.lock();
        assert!(strangers.all.is_empty() && strangers.by_address.is_empty());
    }
}
