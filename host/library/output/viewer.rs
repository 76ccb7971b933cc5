//! Snapshots as one HTML page that turns, zooms and plays, and needs nothing but a browser.
//!
//! The page carries its data: for each snapshot the places (three u16 per body), the speeds (u8)
//! and the kinds (u8), in base64. A coordinate u, from the common centre, is packed as
//! ```text
//! q = 32767 (1 + asinh(u/s)/asinh(R/s))
//! ```
//! with R the largest coordinate of all and s that of half the bodies: as exact as a linear packing
//! within s, and yet no escaper, however far, leaves the page or takes digits from the others.
//!
//! Between snapshots the page draws bodies on smooth curves through four of them, if all snapshots
//! hold the same bodies; else each snapshot stands until the next. The trails of a few bodies leave
//! out those that go round between two snapshots, of which such a curve knows nothing.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::ColourMap;
use crate::bodies::{Bodies, BodyFault, BodyKind};
use crate::io::{Overwrite, Snapshot, write_atomically};
use crate::units::{Shown, Units};
use crate::vectors::distance;

const PAGE: &str = include_str!("assets/view.html");
const STYLE: &str = include_str!("assets/view.css");
const SCRIPT: &str = include_str!("assets/view.js");

/// Middle of the range of a packed coordinate.
const MIDDLE: f64 = 32_767.0;

/// A page in the making: one snapshot after the other, of which it keeps no more than it shows.
#[derive(Clone, Debug)]
pub struct Viewer {
    title: String,
    most_bodies: usize,
    units: Option<Units>,
    /// Names of bodies by their ids.
    names: Vec<String>,
    /// The ids of the bodies shown, as long as every snapshot had all of them once.
    tracked: Option<Vec<u64>>,
    /// In the order of time.
    frames: Vec<Frame>,
    /// True if each snapshot that was added is earlier than the one before.
    is_backward: bool,
}

#[derive(Clone, Debug)]
struct Frame {
    time: f64,
    /// Number of the snapshot's bodies, shown or not.
    bodies: usize,
    places: Vec<[f64; 3]>,
    speeds: Vec<f32>,
    kinds: Vec<u8>,
}

/// Reason why there is no page.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The bodies are broken.
    #[error("cannot show the bodies: {0}")]
    Bodies(#[from] BodyFault),
    /// Nothing to show.
    #[error("there is nothing to show: no snapshot, or none with bodies")]
    Empty,
    /// A snapshot out of the order of time.
    #[error(
        "a snapshot of time {time} comes after one of time {before}: give all in the order of time, forward or back"
    )]
    Order {
        /// Time of the snapshot.
        time: f64,
        /// That of the one before.
        before: f64,
    },
    /// The file could not be written.
    #[error("cannot write page `{}`: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason; `AlreadyExists` under [`Overwrite::Refuse`].
        fault: io::Error,
    },
}

/// Facts that the script needs.
#[derive(Serialize)]
struct About {
    times: Vec<f64>,
    /// Bodies of each snapshot.
    bodies: Vec<usize>,
    /// Number of those shown.
    counts: Vec<usize>,
    /// True if body i is the same body in all snapshots.
    tracked: bool,
    /// s, and asinh(R/s), with the distance of most of the bodies from the centre as unit of length.
    pack: [f64; 2],
    /// True if all bodies lie in the xy plane.
    flat: bool,
    /// The speeds of the first and the last colour.
    speeds: [f64; 2],
    /// Bodies shown of each kind, in each snapshot.
    kinds: Vec<[usize; 3]>,
    colours: String,
    /// Units that lengths, times and speeds are shown in.
    units: [Shown; 3],
    /// True if bodies are followed and few enough for names and trails.
    few: bool,
    /// Bodies that go round between two snapshots, of those few.
    untraced: Vec<usize>,
    /// Names of the bodies shown, where they have names and are few.
    names: Vec<String>,
    /// True if dark matter is left out until it is asked for: it would hide the rest.
    hides_dark: bool,
}

/// Largest number of bodies that are shown with names and trails.
const FEW: usize = 64;

/// A body that comes less far than this part of its way has gone round: on a circle, by a third of it or
/// more.
const STRAIGHT: f64 = 0.83;

impl Viewer {
    /// A page of this title that shows at most `most_bodies` of each snapshot, evenly chosen.
    pub fn new(title: impl Into<String>, most_bodies: usize) -> Self {
        Self {
            title: title.into(),
            most_bodies: most_bodies.max(1),
            units: None,
            names: vec![],
            tracked: None,
            frames: vec![],
            is_backward: false,
        }
    }

    /// With the units of the bodies, where they are known: scale, time and speeds are then in named ones.
    #[must_use]
    pub fn in_units(self, units: Option<Units>) -> Self {
        Self { units, ..self }
    }

    /// With names of the bodies, by their ids.
    #[must_use]
    pub fn named(self, names: &[&str]) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Self { names, ..self }
    }

    /// Adds a snapshot. A run that goes back in time has the latest first; the page plays it forward.
    ///
    /// # Errors
    /// Bodies that fail [`Bodies::check`], and a time out of the order of those that were added.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), ViewError> {
        let bodies = &snapshot.bodies;
        bodies.check()?;
        let time = snapshot.time;
        let last = match self.is_backward {
            true => self.frames.first(),
            false => self.frames.last(),
        };
        if let Some(before) = last.map(|frame| frame.time) {
            self.is_backward |= self.frames.len() == 1 && time < before;
            if time != before && (time < before) != self.is_backward {
                return Err(ViewError::Order { time, before });
            }
        }
        let shown = self.most_bodies.min(bodies.len());
        let even = || {
            (0..shown)
                .map(|i| (i as u128 * bodies.len() as u128 / shown as u128) as usize)
                .collect::<Vec<_>>()
        };
        let chosen = if self.frames.is_empty() {
            let chosen = even();
            let ids: Vec<u64> = chosen.iter().map(|&i| bodies.id[i]).collect();
            self.tracked = find(bodies, &ids).map(|_| ids);
            chosen
        } else {
            match self.tracked.as_ref().and_then(|ids| find(bodies, ids)) {
                Some(chosen) => chosen,
                None => {
                    self.tracked = None;
                    even()
                }
            }
        };
        let speed = |&i: &usize| {
            let [x, y, z] = bodies.body(i).velocity;
            x.hypot(y).hypot(z).min(f64::from(f32::MAX)) as f32
        };
        let place = if self.is_backward {
            0
        } else {
            self.frames.len()
        };
        let frame = Frame {
            time,
            bodies: bodies.len(),
            places: chosen.iter().map(|&i| bodies.body(i).position).collect(),
            speeds: chosen.iter().map(speed).collect(),
            kinds: chosen.iter().map(|&i| bodies.kind[i].number()).collect(),
        };
        self.frames.insert(place, frame);
        Ok(())
    }

    /// Writes the page, whole or not at all.
    ///
    /// # Errors
    /// No bodies, or failures of the file system.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<(), ViewError> {
        if self.frames.iter().all(|frame| frame.places.is_empty()) {
            return Err(ViewError::Empty);
        }
        write_atomically(path, overwrite, |file| self.write_to(file)).map_err(|fault| {
            ViewError::File {
                path: path.to_owned(),
                fault,
            }
        })
    }

    fn write_to(&self, file: &mut impl Write) -> io::Result<()> {
        let centre = self.centre();
        let packing = Packing::of(&self.frames, centre);
        let speeds = self.speeds();
        let about = self.about(&packing, speeds);
        // `</script>` within a string would end the data.
        let about = serde_json::to_string(&about)?.replace('<', "\\u003c");
        for (text, name) in pieces(PAGE) {
            file.write_all(text.as_bytes())?;
            match name {
                "title" => file.write_all(escaped(&self.title).as_bytes())?,
                "style" => file.write_all(STYLE.as_bytes())?,
                "about" => file.write_all(about.as_bytes())?,
                "script" => file.write_all(SCRIPT.as_bytes())?,
                "frames" => {
                    for (index, frame) in self.frames.iter().enumerate() {
                        let data = frame.packed(&packing, speeds);
                        write!(file, "<script type=\"text/plain\" id=\"f{index}\">")?;
                        file.write_all(base64(&data).as_bytes())?;
                        writeln!(file, "</script>")?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn about(&self, packing: &Packing, speeds: [f64; 2]) -> About {
        let first = &self.frames[0];
        let kinds = |frame: &Frame| {
            let kind = |kind: u8| frame.kinds.iter().filter(|k| **k == kind).count();
            [0, 1, 2].map(kind)
        };
        let kinds: Vec<[usize; 3]> = self.frames.iter().map(kinds).collect();
        let all = || self.frames.iter().flat_map(|frame| &frame.places);
        let dark = BodyKind::Dark.number();
        let of_dark = kinds[0][usize::from(dark)];
        let hides_dark = of_dark > 0 && of_dark < first.places.len();
        let shown = self
            .frames
            .iter()
            .flat_map(|frame| frame.places.iter().zip(&frame.kinds));
        let shown = shown.filter(|(_, kind)| !hides_dark || **kind != dark);
        let distances = shown
            .map(|(place, _)| distance(*place, packing.centre))
            .collect();
        let extent = positive(quantile(distances, 0.9));
        let latest = self.frames.iter().map(|frame| frame.time.abs());
        let latest = latest.fold(0.0, f64::max);
        const NUMBER: Shown = Shown {
            name: "",
            factor: 1.0,
        };
        let name = |id: &u64| self.names.get(usize::try_from(*id).ok()?).cloned();
        let [length, time, speed] = self.units.map_or([NUMBER; 3], |units| {
            [
                units.shown_length(extent),
                units.shown_time(latest),
                units.shown_speed(speeds[1]),
            ]
        });
        About {
            units: [
                Shown {
                    factor: length.factor * extent,
                    ..length
                },
                time,
                speed,
            ],
            few: !self.few().is_empty(),
            untraced: self.untraced(),
            names: self.few().iter().filter_map(name).collect(),
            hides_dark,
            times: self.frames.iter().map(|frame| frame.time).collect(),
            bodies: self.frames.iter().map(|frame| frame.bodies).collect(),
            counts: self.frames.iter().map(|frame| frame.places.len()).collect(),
            tracked: self.tracked.is_some(),
            pack: [packing.length / extent, packing.range],
            flat: all().all(|place| place[2] == first.places[0][2]),
            speeds,
            kinds,
            colours: base64(&speed_colours()),
        }
    }

    /// The median body over all snapshots, which escapers do not move.
    fn centre(&self) -> [f64; 3] {
        [0, 1, 2].map(|axis| {
            let column = self.frames.iter().flat_map(|frame| &frame.places);
            quantile(column.map(|place| place[axis]).collect(), 0.5)
        })
    }

    /// The range of speeds that all but two in a hundred bodies have.
    fn speeds(&self) -> [f64; 2] {
        let speeds = self.frames.iter().flat_map(|frame| &frame.speeds);
        let speeds: Vec<f64> = speeds.map(|v| f64::from(*v)).collect();
        let slow = quantile(speeds.clone(), 0.01);
        let fast = quantile(speeds, 0.99);
        [slow, fast]
    }

    /// Ids of the bodies shown, if they are followed and few.
    fn few(&self) -> &[u64] {
        let ids = self.tracked.as_deref().unwrap_or_default();
        if ids.len() <= FEW { ids } else { &[] }
    }

    /// Numbers of the few bodies that come less far from one snapshot to the next than their speed
    /// takes them.
    fn untraced(&self) -> Vec<usize> {
        let goes_round = |body: &usize| {
            self.frames.windows(2).any(|pair| {
                let [before, after] = [0, 1].map(|k| pair[k].places[*body]);
                let speed =
                    0.5 * (f64::from(pair[0].speeds[*body]) + f64::from(pair[1].speeds[*body]));
                let way = speed * (pair[1].time - pair[0].time);
                distance(before, after) < STRAIGHT * way
            })
        };
        (0..self.few().len()).filter(goes_round).collect()
    }
}

struct Packing {
    centre: [f64; 3],
    length: f64,
    range: f64,
}

impl Packing {
    fn of(frames: &[Frame], centre: [f64; 3]) -> Self {
        let places = frames.iter().flat_map(|frame| &frame.places);
        let reach: Vec<f64> = places
            .map(|place| {
                let [x, y, z] = [0, 1, 2].map(|axis| (place[axis] - centre[axis]).abs());
                x.max(y).max(z)
            })
            .collect();
        let largest = positive(reach.iter().copied().fold(0.0, f64::max));
        let length = quantile(reach, 0.5).max(1e-6 * largest);
        Self {
            centre,
            length,
            range: (largest / length).asinh(),
        }
    }

    fn pack(&self, place: [f64; 3]) -> [u16; 3] {
        [0, 1, 2].map(|axis| {
            let u = (place[axis] - self.centre[axis]) / self.length;
            (MIDDLE * (1.0 + u.asinh() / self.range)).round() as u16
        })
    }
}

impl Frame {
    fn packed(&self, packing: &Packing, [slow, fast]: [f64; 2]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 * self.places.len());
        for place in &self.places {
            bytes.extend(packing.pack(*place).iter().flat_map(|q| q.to_le_bytes()));
        }
        let range = positive(fast - slow);
        let shade = |v: &f32| ((f64::from(*v) - slow) / range).clamp(0.0, 1.0);
        let speed = |v: &f32| (255.0 * shade(v)).round() as u8;
        bytes.extend(self.speeds.iter().map(speed));
        bytes.extend(&self.kinds);
        bytes
    }
}

/// Finds these ids, unless one is missing or there twice.
fn find(bodies: &Bodies, ids: &[u64]) -> Option<Vec<usize>> {
    let mut places = HashMap::with_capacity(bodies.len());
    for (i, id) in bodies.id.iter().enumerate() {
        if places.insert(*id, i).is_some() {
            return None;
        }
    }
    ids.iter().map(|id| places.get(id).copied()).collect()
}

/// Slow to fast; black, which would not be seen, is left out.
fn speed_colours() -> Vec<u8> {
    (0..256)
        .flat_map(|i| ColourMap::Plasma.colour(0.12 + 0.88 * f64::from(i) / 255.0))
        .collect()
}

/// A length or speed to divide by.
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 1.0 }
}

fn quantile(values: Vec<f64>, fraction: f64) -> f64 {
    super::framing::quantile(values, fraction).unwrap_or_default()
}

/// The template as pieces of text, each with the name in double braces that follows it; the last
/// has none.
fn pieces(template: &str) -> impl Iterator<Item = (&str, &str)> {
    template
        .split("}}")
        .map(|piece| piece.split_once("{{").unwrap_or((piece, "")))
}

/// Text within HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// RFC 4648, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::bodies::Body;
    use crate::initial_conditions::plummer;

    fn snapshot(time: f64, bodies: Bodies) -> Snapshot {
        Snapshot { time, bodies }
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    /// The page unpacks what was packed, an escaper a million times as far included.
    #[test]
    fn packing_keeps_escapers_and_digits() {
        let mut bodies = plummer(500, 3).unwrap();
        bodies.x[7] = 1e6;
        let mut viewer = Viewer::new("t", 1_000);
        viewer.add(&snapshot(0.0, bodies)).unwrap();
        let packing = Packing::of(&viewer.frames, viewer.centre());
        for place in &viewer.frames[0].places {
            for (q, (x, centre)) in packing
                .pack(*place)
                .into_iter()
                .zip(place.iter().zip(packing.centre))
            {
                let step = packing.range / MIDDLE;
                let unpacked = packing.length * (step * (f64::from(q) - MIDDLE)).sinh();
                let u = x - centre;
                // Half a step, times the slope of sinh there; and rounding.
                let allowed = 0.51 * step * u.hypot(packing.length);
                assert!((unpacked - u).abs() <= allowed, "{unpacked} is not {u}");
            }
        }
        assert!(packing.range / MIDDLE < 1e-3);
    }

    #[test]
    fn bodies_are_followed_by_their_ids() {
        let bodies = plummer(100, 1).unwrap();
        let reversed: Bodies = (0..100).rev().map(|i| bodies.body(i)).collect();
        let mut viewer = Viewer::new("t", 10);
        for bodies in [&bodies, &reversed] {
            viewer.add(&snapshot(0.0, bodies.clone())).unwrap();
        }
        assert!(viewer.tracked.is_some());
        assert_eq!(viewer.frames[0].places, viewer.frames[1].places);
        let packing = Packing::of(&viewer.frames, viewer.centre());
        let about = viewer.about(&packing, [0.0, 1.0]);
        assert_eq!((about.bodies, about.counts), (vec![100; 2], vec![10; 2]));

        // One body is gone: nothing is followed any more, everything is shown.
        let fewer: Bodies = bodies.iter().skip(1).collect();
        viewer.add(&snapshot(0.0, fewer)).unwrap();
        assert!(viewer.tracked.is_none());
        assert_eq!(viewer.frames[2].places.len(), 10);
    }

    /// On a circle, by a quarter of it and by half from one snapshot to the next.
    #[test]
    fn bodies_that_go_round_between_snapshots_have_no_trail() {
        let at = |angle: f64| Body {
            position: [angle.cos(), angle.sin(), 0.0],
            velocity: [-angle.sin(), angle.cos(), 0.0],
            mass: 1.0,
            id: 0,
            kind: BodyKind::Star,
        };
        for (parts, untraced) in [(4, vec![]), (2, vec![0])] {
            let step = TAU / f64::from(parts);
            let mut viewer = Viewer::new("t", 10);
            for time in [0.0, step, 2.0 * step] {
                let bodies = [at(time)].into_iter().collect();
                viewer.add(&snapshot(time, bodies)).unwrap();
            }
            assert_eq!(viewer.untraced(), untraced);
        }
    }

    /// Lengths that f32 does not hold are as good as others: the page has its own unit.
    #[test]
    fn lengths_of_any_size_are_shown() {
        for scale in [1e-200, 1.0, 1e200] {
            let mut bodies = plummer(500, 3).unwrap();
            for column in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
                column.iter_mut().for_each(|x| *x *= scale);
            }
            let mut viewer = Viewer::new("t", 1_000);
            viewer.add(&snapshot(0.0, bodies)).unwrap();
            let about = viewer.about(&Packing::of(&viewer.frames, viewer.centre()), [0.0, 1.0]);
            assert!((0.1..1.0).contains(&about.pack[0]), "{:?}", about.pack);
            let extent = about.units[0].factor / scale;
            assert!((1.0..5.0).contains(&extent), "{extent}");
        }
    }

    #[test]
    fn a_title_is_only_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        let title = "</title><script>alert(\"1\")</script> & {{about}}";
        let mut viewer = Viewer::new(title, 10);
        viewer.add(&snapshot(1.5, plummer(3, 1).unwrap())).unwrap();
        viewer.write(&path, Overwrite::Refuse).unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(!page.contains("<script>alert"));
        assert!(page.contains(
            "&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; {{about}}"
        ));
        assert!(page.contains("\"times\":[1.5]"));
        assert!(!page.contains("http"), "the page must not ask the network");
        let refusal = viewer.write(&path, Overwrite::Refuse).unwrap_err();
        assert!(matches!(refusal, ViewError::File { ref fault, .. }
            if fault.kind() == io::ErrorKind::AlreadyExists));
    }

    #[test]
    fn snapshots_out_of_order_are_refused() {
        let mut viewer = Viewer::new("t", 10);
        let mut add = |time| viewer.add(&snapshot(time, plummer(3, 1).unwrap()));
        assert!(add(2.0).is_ok() && add(2.0).is_ok());
        let refusal = add(1.0).unwrap_err().to_string();
        assert!(
            refusal.contains("time 1 comes after one of time 2"),
            "{refusal}"
        );
    }

    #[test]
    fn broken_or_no_bodies_are_refused() {
        let mut viewer = Viewer::new("t", 10);
        let refusal = viewer.write(Path::new("a.html"), Overwrite::Refuse);
        assert!(matches!(refusal, Err(ViewError::Empty)));
        let mut bodies = plummer(3, 1).unwrap();
        bodies.vy[1] = f64::NAN;
        let refusal = viewer.add(&snapshot(0.0, bodies));
        assert!(matches!(refusal, Err(ViewError::Bodies(_))));
    }
}
