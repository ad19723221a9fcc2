//! Text from outside that may deceive a reader, leak a secret or act on a terminal.
//!
//! [`hygiene`] finds hidden, reordering and controlling characters, [`confusable`] finds names and words that look like
//! others, and [`secret`] finds keys and tokens. [`escape`] makes text from outside legible in messages.

pub mod confusable;
pub mod escape;
pub mod hygiene;
pub mod secret;
