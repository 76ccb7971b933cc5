//! Messages between ranks: values of any type that serde knows, in the format of postcard.

use self::format::{from_bytes, to_bytes};
use super::{Team, UNAVAILABLE};

pub(crate) use self::format::Message;

/// Most bytes of a message that are broadcast together with its length. Messages that are frequent have no more.
const AT_ONCE: usize = 248;
/// Bytes of the length.
const LENGTH: usize = size_of::<u64>();

#[cfg(feature = "ranks")]
mod format {
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    /// Something that ranks tell each other.
    pub(crate) trait Message: Serialize + DeserializeOwned {}

    impl<T: Serialize + DeserializeOwned> Message for T {}

    pub(super) fn to_bytes<T: Message>(message: &T) -> Vec<u8> {
        let written = postcard::to_extend(message, vec![]);
        written.expect("no part of a message is of this process alone")
    }

    pub(super) fn from_bytes<T: Message>(bytes: &[u8]) -> Result<T, String> {
        match postcard::take_from_bytes(bytes) {
            Ok((message, [])) => Ok(message),
            Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
            Err(why) => Err(why.to_string()),
        }
    }
}

/// Without the feature no [`Team`] has several ranks.
#[cfg(not(feature = "ranks"))]
mod format {
    pub(crate) trait Message {}

    impl<T> Message for T {}

    pub(super) fn to_bytes<T>(_: &T) -> Vec<u8> {
        vec![]
    }

    pub(super) fn from_bytes<T>(_: &[u8]) -> Result<T, String> {
        Err("the feature `ranks` is not there".to_owned())
    }
}

impl Team {
    /// Tells the other ranks something, as rank 0.
    pub(crate) fn tell<T: Message>(&self, message: &T) {
        if self.is_alone() {
            return;
        }
        let mut bytes = to_bytes(message);
        let mut first = [0; LENGTH + AT_ONCE];
        first[..LENGTH].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let at_once = bytes.len().min(AT_ONCE);
        let (now, later) = bytes.split_at_mut(at_once);
        first[LENGTH..][..at_once].copy_from_slice(now);
        self.broadcast(&mut first);
        if !later.is_empty() {
            self.broadcast(later);
        }
    }

    /// Waits for what rank 0 tells.
    pub(crate) fn hear<T: Message>(&self) -> T {
        let mut first = [0; LENGTH + AT_ONCE];
        self.broadcast(&mut first);
        let (length, now) = first.split_first_chunk().expect("it is longer");
        let length = u64::from_le_bytes(*length) as usize;
        let mut bytes = vec![];
        if bytes.try_reserve_exact(length).is_err() {
            let why = format!("no memory for a message of {length} bytes");
            self.abort(UNAVAILABLE, &why);
        }
        bytes.extend_from_slice(&now[..length.min(AT_ONCE)]);
        bytes.resize(length, 0);
        if length > AT_ONCE {
            self.broadcast(&mut bytes[AT_ONCE..]);
        }
        self.read(0, &bytes)
    }

    /// Messages of all ranks.
    pub(crate) fn told_by_all<T: Message>(&self, mine: T) -> Vec<T> {
        if self.is_alone() {
            return vec![mine];
        }
        let all = self.gather_ragged(&to_bytes(&mine));
        let read = |(rank, bytes): (usize, &Vec<u8>)| self.read(rank, bytes);
        all.iter().enumerate().map(read).collect()
    }

    /// The message of a rank. All ranks are of one version: one that cannot be read was damaged on the way.
    fn read<T: Message>(&self, from: usize, bytes: &[u8]) -> T {
        from_bytes(bytes).unwrap_or_else(|why| {
            let length = bytes.len();
            let why = format!("a message of {length} bytes from rank {from} cannot be read: {why}");
            self.abort(UNAVAILABLE, &why)
        })
    }
}

#[cfg(test)]
impl Team {
    /// Returns whether one broadcast tells a message.
    pub(crate) fn is_told_at_once(message: &impl Message) -> bool {
        to_bytes(message).len() <= AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::ranks::threads::together_with;

    /// All kinds of numbers, in messages of one broadcast and of two.
    #[test]
    fn numbers_keep_their_bits() {
        let odd = [
            0.0_f64.to_bits(),
            (-0.0_f64).to_bits(),
            1,
            (1 << 63) | 1,
            f64::MIN_POSITIVE.to_bits() - 1,
            f64::INFINITY.to_bits(),
            0x7ff8_0000_dead_beef,
            0xfff0_0000_0000_0001,
        ];
        for count in 0..40 {
            let told: Vec<u64> = odd.iter().copied().cycle().take(count).collect();
            let numbers: Vec<f64> = told.iter().copied().map(f64::from_bits).collect();
            let heard = together_with(&[1, 1], |team| {
                let heard: Vec<f64> = match team.rank() {
                    0 => {
                        team.tell(&numbers);
                        numbers.clone()
                    }
                    _ => team.hear(),
                };
                heard.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            });
            assert!(heard.iter().all(|heard| *heard == told), "{heard:x?}");
        }
    }

    #[test]
    fn each_rank_is_heard() {
        let all = ["", "a", "more"].map(str::to_owned);
        let heard = together_with(&[1, 1, 1], |team| {
            team.told_by_all(all[team.rank()].clone())
        });
        assert!(heard.iter().all(|heard| *heard == all));
        assert_eq!(Team::alone().told_by_all(7), [7]);
    }

    #[test]
    fn damaged_messages_are_refused() {
        let message = (vec![1.5, 2.5], "text".to_owned(), Some(3_u32));
        let mut bytes = to_bytes(&message);
        for length in 0..bytes.len() {
            let part = from_bytes::<(Vec<f64>, String, Option<u32>)>(&bytes[..length]);
            assert!(part.is_err(), "{length} bytes");
        }
        assert_eq!(from_bytes(&bytes), Ok(message.clone()));
        bytes.push(0);
        let more = from_bytes::<(Vec<f64>, String, Option<u32>)>(&bytes);
        assert_eq!(more, Err("1 bytes too many".to_owned()));
    }

    #[test]
    fn ranks_end_where_a_message_cannot_be_read() {
        let said = together_with(&[1, 1], |team| match team.rank() {
            0 => {
                team.tell(&vec![0xff_u8]); // of which no text consists
                String::new()
            }
            _ => {
                let ended = catch_unwind(AssertUnwindSafe(|| team.hear::<String>()));
                let why = ended.expect_err("that is no text");
                why.downcast_ref::<String>().expect("words").clone()
            }
        });
        let said = &said[1];
        assert!(
            said.contains("rank 1 of 2: a message of 2 bytes from rank 0 cannot be read: "),
            "{said}"
        );
    }
}
