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
//! hold the same bodies; else each snapshot stands until the next.

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
    /// Bodies of the first snapshot, shown or not.
    bodies: usize,
    frames: Vec<Frame>,
}

#[derive(Clone, Debug)]
struct Frame {
    time: f64,
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
    counts: Vec<usize>,
    /// True if body i is the same body in all snapshots.
    tracked: bool,
    /// s, and asinh(R/s).
    pack: [f64; 2],
    /// Distance from the centre that the page shows at first: that of most of the bodies.
    extent: f64,
    /// True if all bodies lie in the xy plane.
    flat: bool,
    /// The speeds of the first and the last colour.
    speeds: [f64; 2],
    /// Bodies of each kind in the first snapshot.
    kinds: [usize; 3],
    colours: String,
    facts: String,
    /// Units that lengths, times and speeds are shown in.
    units: [Shown; 3],
    /// Names of the bodies shown, where they have names and are few.
    names: Vec<String>,
    /// True if dark matter is left out until it is asked for: it would hide the rest.
    hides_dark: bool,
}

/// Most bodies whose names are shown.
const MOST_NAMES: usize = 64;

impl Viewer {
    /// A page of this title that shows at most `most_bodies` of each snapshot, evenly chosen.
    pub fn new(title: impl Into<String>, most_bodies: usize) -> Self {
        Self {
            title: title.into(),
            most_bodies: most_bodies.max(1),
            units: None,
            names: vec![],
            tracked: None,
            bodies: 0,
            frames: vec![],
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

    /// Adds a snapshot; add them in the order of time.
    ///
    /// # Errors
    /// Bodies that fail [`Bodies::check`].
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), ViewError> {
        let bodies = &snapshot.bodies;
        bodies.check()?;
        let shown = self.most_bodies.min(bodies.len());
        let even = || {
            (0..shown)
                .map(|i| (i as u128 * bodies.len() as u128 / shown as u128) as usize)
                .collect::<Vec<_>>()
        };
        let chosen = if self.frames.is_empty() {
            let chosen = even();
            self.bodies = bodies.len();
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
            x.hypot(y).hypot(z) as f32
        };
        self.frames.push(Frame {
            time: snapshot.time,
            places: chosen.iter().map(|&i| bodies.body(i).position).collect(),
            speeds: chosen.iter().map(speed).collect(),
            kinds: chosen.iter().map(|&i| bodies.kind[i].number()).collect(),
        });
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
        let kind = |kind: u8| first.kinds.iter().filter(|k| **k == kind).count();
        let all = || self.frames.iter().flat_map(|frame| &frame.places);
        let mut facts = format!("{} bodies", grouped(self.bodies));
        if first.places.len() < self.bodies {
            facts += &format!(", {} shown", grouped(first.places.len()));
        }
        if self.frames.len() > 1 {
            facts += &format!(" · {} snapshots", grouped(self.frames.len()));
        }
        let kinds = [kind(0), kind(1), kind(2)];
        let dark = BodyKind::Dark.number();
        let hides_dark =
            kinds[usize::from(dark)] > 0 && kinds[usize::from(dark)] < first.places.len();
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
        let names = self.tracked.as_ref().filter(|ids| ids.len() <= MOST_NAMES);
        let name = |id: &u64| self.names.get(usize::try_from(*id).ok()?).cloned();
        About {
            units: self.units.map_or([NUMBER; 3], |units| {
                [
                    units.shown_length(extent),
                    units.shown_time(latest),
                    units.shown_speed(speeds[1]),
                ]
            }),
            names: names.map_or(vec![], |ids| ids.iter().filter_map(name).collect()),
            hides_dark,
            times: self.frames.iter().map(|frame| frame.time).collect(),
            counts: self.frames.iter().map(|frame| frame.places.len()).collect(),
            tracked: self.tracked.is_some(),
            pack: [packing.length, packing.range],
            extent,
            flat: all().all(|place| place[2] == first.places[0][2]),
            speeds,
            kinds,
            colours: base64(&speed_colours()),
            facts,
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
        [slow, if fast > slow { fast } else { slow + 1.0 }]
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
        let shade = |v: &f32| ((f64::from(*v) - slow) / (fast - slow)).clamp(0.0, 1.0);
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

/// `20 000`, with thin spaces.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    grouped
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
    use super::*;
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
        assert_eq!(
            viewer.about(&packing, [0.0, 1.0]).facts,
            "100 bodies, 10 shown · 2 snapshots"
        );

        // One body is gone: nothing is followed any more, everything is shown.
        let fewer: Bodies = bodies.iter().skip(1).collect();
        viewer.add(&snapshot(0.0, fewer)).unwrap();
        assert!(viewer.tracked.is_none());
        assert_eq!(viewer.frames[2].places.len(), 10);
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
