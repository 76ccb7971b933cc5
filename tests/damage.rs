//! Files changed at random, with the same random numbers on every machine.

/// Xorshift64*: the same numbers on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 11) % limit.max(1) as u64) as usize
    }

    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Numbers at the edges of types.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0000,
];

/// Text that means something in one of the formats.
const WORDS: [&str; 24] = [
    "nan",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"",
    ",",
    ";",
    "\n",
    "#",
    "# bodies = 99\n",
    "<DataArray ",
    "</VTKFile>",
    "NumberOfPoints=\"18446744073709551615\"",
    "offset=\"9223372036854775807\"",
    "format=\"ascii\"",
    "99999999999",
    "{",
    "[",
    "]]",
    "null",
    "\\u0000",
    "\u{1b}[2J",
    " = ",
    "1979-05-27T07:32:00Z",
];

/// Changes a file in one to four places.
pub(crate) fn change(random: &mut Random, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.next() as u8);
        }
        let length = bytes.len();
        // Headers are at the beginning: every third change is there.
        let at = match random.below(3) {
            0 => random.below(length.min(512)),
            _ => random.below(length),
        };
        let width = random.of(&[1, 2, 4, 8]).min(length - at);
        match random.below(12) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 => bytes.truncate(at),
            4 => {
                let edge = random.of(&EDGES).to_le_bytes();
                bytes[at..at + width].copy_from_slice(&edge[..width]);
                if random.below(2) == 0 {
                    bytes[at..at + width].reverse();
                }
            }
            5 => {
                let mut number = [0; 8];
                number[..width].copy_from_slice(&bytes[at..at + width]);
                let step = (random.below(33) as u64).wrapping_sub(16);
                let number = u64::from_le_bytes(number).wrapping_add(step).to_le_bytes();
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            6 => drop(bytes.drain(at..at + random.below(64).min(length - at))),
            7 => {
                let part = bytes[at..at + random.below(128).min(length - at)].to_vec();
                let to = random.below(length + 1);
                drop(bytes.splice(to..to, part));
            }
            8 => drop(bytes.splice(at..at, random.of(&WORDS).bytes())),
            9 => {
                let from = random.below(other.len());
                let part = &other[from..from + random.below(256).min(other.len() - from)];
                let end = (at + part.len()).min(length);
                drop(bytes.splice(at..end, part.iter().copied()));
            }
            10 => bytes[at..]
                .iter_mut()
                .take(16)
                .for_each(|byte| *byte = 0xff),
            _ => bytes[at..].iter_mut().take(16).for_each(|byte| *byte = 0),
        }
    }
    bytes.truncate(1 << 20);
    bytes
}
