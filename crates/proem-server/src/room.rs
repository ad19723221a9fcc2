//! The memory for request bodies: each has a limit, and all that are being received have one together.

use std::sync::Arc;

use proem_core::limit::BODIES_BYTES_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The size that every body may have without a permit; most are far smaller.
const FREE_BYTES: usize = 16 << 10;
/// The size that one permit stands for.
const PIECE_BYTES: usize = 64 << 10;

/// The memory for bodies.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// Room that is enough for at least one body of `body_bytes_max`.
    pub(crate) fn new(body_bytes_max: usize) -> Self {
        let pieces = BODIES_BYTES_MAX.max(body_bytes_max).div_ceil(PIECE_BYTES);
        Self(Arc::new(Semaphore::new(pieces.min(Semaphore::MAX_PERMITS))))
    }

    /// Makes room for a body of which `bytes` bytes are there; tells whether there was enough.
    pub(crate) fn hold(&self, held: &mut BodyPermit, bytes: usize) -> bool {
        while FREE_BYTES + held.pieces() * PIECE_BYTES < bytes {
            let Ok(piece) = Arc::clone(&self.0).try_acquire_owned() else { return false };
            match &mut held.0 {
                Some(permit) => permit.merge(piece),
                None => held.0 = Some(piece),
            }
        }
        true
    }
}

/// The room that one body has, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BodyPermit(Option<OwnedSemaphorePermit>);

impl BodyPermit {
    fn pieces(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_by_what_is_there_and_given_back() {
        let room = Room::new(BODIES_BYTES_MAX);
        let (mut large, mut small) = (BodyPermit::default(), BodyPermit::default());
        assert!(room.hold(&mut large, BODIES_BYTES_MAX));
        assert!(room.hold(&mut large, BODIES_BYTES_MAX + FREE_BYTES));
        assert!(!room.hold(&mut large, BODIES_BYTES_MAX + FREE_BYTES + 1));
        assert!(room.hold(&mut small, FREE_BYTES), "a usual body needs no room");
        assert!(!room.hold(&mut small, FREE_BYTES + 1));
        drop(large);
        assert!(room.hold(&mut small, FREE_BYTES + 1));
    }

    #[test]
    fn the_largest_body_always_fits() {
        let most = BODIES_BYTES_MAX * 3;
        assert!(Room::new(most).hold(&mut BodyPermit::default(), most));
    }
}
