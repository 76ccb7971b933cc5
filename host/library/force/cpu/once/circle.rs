//! Each tile with each other, by the circle method (R. Schurig, 1886): in each round all tiles meet in pairs, and the
//! order in which a tile meets the others is always the same.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::Scope;

/// Tiles on their way through the rounds. A pair meets as soon as both its tiles are done with the round before, not when
/// all others are: where another program takes the processor from one thread, one pair is late.
struct Circle<'a, T, M> {
    seats: Vec<Seat<'a, T>>,
    meet: M,
}

/// A tile, and how far it is.
struct Seat<'a, T> {
    /// Locked by one meeting at a time: nobody waits for it.
    tile: Mutex<&'a mut T>,
    /// Rounds that it is done with.
    done: AtomicUsize,
    /// One more than the last round whose meeting was begun in which it is the tile of the lower index.
    begun: AtomicUsize,
}

/// Lets each of an even number of tiles `meet` each other.
pub(in crate::force::cpu) fn all_meet<T: Send>(
    tiles: &mut [T],
    meet: impl Fn(&mut T, &mut T) + Sync,
) {
    let seat = |tile| Seat {
        tile: Mutex::new(tile),
        done: AtomicUsize::new(0),
        begun: AtomicUsize::new(0),
    };
    let seats = tiles.iter_mut().map(seat).collect();
    let circle = &Circle { seats, meet };
    rayon::scope(|scope| {
        for place in 0..circle.seats.len() / 2 {
            let pair = [place, circle.opposite(place)];
            scope.spawn(move |scope| circle.meet(pair, 0, scope));
        }
    });
}

impl<T: Send, M: Fn(&mut T, &mut T) + Sync> Circle<'_, T, M> {
    /// Rounds, and the last place.
    fn rounds(&self) -> usize {
        self.seats.len() - 1
    }

    fn opposite(&self, place: usize) -> usize {
        self.rounds() - place
    }

    /// The place of a tile in a round: the first stays, the others move on by one.
    fn place(&self, tile: usize, round: usize) -> usize {
        match tile {
            0 => 0,
            _ => (tile - 1 + round) % self.rounds() + 1,
        }
    }

    /// The tile at a place: the inverse of [`place`](Self::place).
    fn tile(&self, place: usize, round: usize) -> usize {
        match place {
            0 => 0,
            _ => (place - 1 + self.rounds() - round) % self.rounds() + 1,
        }
    }

    /// The pair in which a tile takes part in a round, that of the front place first.
    fn pair_of(&self, tile: usize, round: usize) -> [usize; 2] {
        let place = self.place(tile, round);
        let front = place.min(self.opposite(place));
        [front, self.opposite(front)].map(|place| self.tile(place, round))
    }

    /// Lets a pair meet, and goes on with those of the next round that waited for it alone.
    fn meet<'s>(&'s self, pair: [usize; 2], round: usize, scope: &Scope<'s>) {
        {
            let [mut one, mut other] = pair.map(|tile| self.seats[tile].lock());
            (self.meet)(&mut one, &mut other);
        }
        let next = round + 1;
        for tile in pair {
            self.seats[tile].done.store(next, Ordering::SeqCst);
        }
        if next == self.rounds() {
            return;
        }
        for tile in pair {
            let pair = self.pair_of(tile, next);
            // Of two that end at the same time at least one sees that both have, and one alone begins the next.
            let is_ready = |tile: usize| self.seats[tile].done.load(Ordering::SeqCst) == next;
            let lower = &self.seats[pair[0].min(pair[1])].begun;
            if pair.into_iter().all(is_ready) && lower.fetch_max(next + 1, Ordering::SeqCst) <= next
            {
                scope.spawn(move |scope| self.meet(pair, next, scope));
            }
        }
    }
}

impl<'a, T> Seat<'a, T> {
    fn lock(&self) -> MutexGuard<'_, &'a mut T> {
        self.tile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The tiles that each of so many meets, in order, where some meetings take long.
    fn met(tiles: usize) -> Vec<Vec<usize>> {
        let mut met: Vec<(usize, Vec<usize>)> = (0..tiles).map(|tile| (tile, vec![])).collect();
        all_meet(&mut met, |one, other| {
            if one.0 % 3 == 1 {
                thread::sleep(Duration::from_micros(50));
            }
            one.1.push(other.0);
            other.1.push(one.0);
        });
        met.into_iter().map(|(_, met)| met).collect()
    }

    /// In the order of rounds, whichever pair is late.
    #[test]
    fn each_meets_each_once_in_the_order_of_rounds() {
        for tiles in [2, 4, 6, 20] {
            let mut places: Vec<usize> = (0..tiles).collect();
            let mut expected = vec![vec![]; tiles];
            for _ in 1..tiles {
                for place in 0..tiles {
                    expected[places[place]].push(places[tiles - 1 - place]);
                }
                places[1..].rotate_right(1);
            }
            assert_eq!(met(tiles), expected, "{tiles} tiles");
            assert!(expected.iter().all(|met| met.len() == tiles - 1));
        }
    }
}
