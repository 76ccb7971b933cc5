//! Choice of the bodies and the section of space that a picture shows.

use std::str::FromStr;

use super::UnknownChoice;
use crate::bodies::{Bodies, BodyKind};
use crate::vectors::axes;

/// Subset of the bodies that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subset {
    /// Luminous matter: gas and stars; dark matter only where there is nothing else. A halo of
    /// massive dark bodies would hide the disk within.
    Luminous,
    /// Every body.
    All,
    /// Bodies of one kind.
    Only(BodyKind),
}

/// `luminous`, `all`, or the name of a kind.
impl FromStr for Subset {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        match name {
            "luminous" => Ok(Self::Luminous),
            "all" => Ok(Self::All),
            _ => BodyKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
                .map(Self::Only)
                .ok_or_else(|| UnknownChoice::new(name, "luminous, all, gas, dark, star")),
        }
    }
}

/// The section of space that a picture shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Section {
    /// The point in the middle of each panel.
    pub centre: [f64; 3],
    /// Length from the middle to the nearest edge of a panel, above zero. Both axes have the same
    /// scale.
    pub half_width: f64,
}

impl Section {
    /// The frame that shows 95 of 100 of the bodies numbered `chosen`, with a margin: around the
    /// median of each coordinate, which stragglers do not move.
    pub(super) fn around_chosen(bodies: &Bodies, chosen: &[usize]) -> Self {
        let centre = [&bodies.x, &bodies.y, &bodies.z].map(|column| {
            quantile(chosen.iter().map(|&i| column[i]).collect(), 0.5).unwrap_or_default()
        });
        let distances = chosen.iter().map(|&i| {
            let position = bodies.body(i).position;
            [0, 1, 2]
                .into_iter()
                .map(|k| (position[k] - centre[k]).powi(2))
                .sum::<f64>()
                .sqrt()
        });
        let radius = quantile(distances.collect(), 0.95).unwrap_or_default();
        // One body, or several in one place, have no extent of their own.
        let half_width = if radius > 0.0 { 1.35 * radius } else { 1.0 };
        Self { centre, half_width }
    }

    /// The frame that shows 95 of 100 of the selected bodies, with a margin: around the median of
    /// each coordinate, which stragglers do not move. Take it from one snapshot and give it to all
    /// pictures of a series.
    pub fn around(bodies: &Bodies, selection: Subset) -> Self {
        Self::around_chosen(bodies, &choose(bodies, selection))
    }

    /// The smallest frame that shows all of what `frames` show; `None` of none.
    pub fn enclosing(frames: &[Self]) -> Option<Self> {
        let edges = axes(|axis| {
            frames
                .iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |edge, frame| {
                    let (middle, half) = (frame.centre[axis], frame.half_width);
                    [edge[0].min(middle - half), edge[1].max(middle + half)]
                })
        });
        (!frames.is_empty()).then(|| Self {
            centre: edges.map(|[low, high]| low + (high - low) / 2.0),
            half_width: edges
                .iter()
                .map(|[low, high]| (high - low) / 2.0)
                .fold(0.0, f64::max),
        })
    }
}

/// The numbers of the selected bodies.
pub(super) fn choose(bodies: &Bodies, selection: Subset) -> Vec<usize> {
    let of = |wanted: &dyn Fn(BodyKind) -> bool| -> Vec<usize> {
        (0..bodies.len())
            .filter(|i| wanted(bodies.kind[*i]))
            .collect()
    };
    match selection {
        Subset::All => of(&|_| true),
        Subset::Only(kind) => of(&|other| other == kind),
        Subset::Luminous => {
            let luminous = of(&|kind| kind != BodyKind::Dark);
            if luminous.is_empty() {
                of(&|_| true)
            } else {
                luminous
            }
        }
    }
}

/// The value below which the part `fraction` of `values` lies; `None` of none.
pub(super) fn quantile(mut values: Vec<f64>, fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let index = (fraction * last as f64).round() as usize;
    Some(*values.select_nth_unstable_by(index, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::Body;
    use crate::initial_conditions::plummer;

    #[test]
    fn frames_ignore_stragglers() {
        let mut bodies = plummer(1_000, 1).unwrap();
        let frame = Section::around(&bodies, Subset::Luminous);
        // 95 of 100 lie within 5.4 scale radii: 3.2 in standard units.
        assert!((3.0..6.0).contains(&frame.half_width), "{frame:?}");
        for i in 0..10 {
            bodies.x[i] = 1e6;
        }
        let moved = Section::around(&bodies, Subset::Luminous);
        assert!(moved.half_width < 2.0 * frame.half_width && moved.centre[0].abs() < 0.1);

        let single: Bodies = [Body {
            position: [3.0; 3],
            velocity: [0.0; 3],
            mass: 1.0,
            id: 0,
            kind: BodyKind::Star,
        }]
        .into_iter()
        .collect();
        let frame = Section::around(&single, Subset::All);
        assert_eq!(
            frame,
            Section {
                centre: [3.0; 3],
                half_width: 1.0
            }
        );
    }

    #[test]
    fn one_frame_holds_several() {
        let frame = |x, half_width| Section {
            centre: [x, 0.0, 1.0],
            half_width,
        };
        assert_eq!(Section::enclosing(&[]), None);
        assert_eq!(
            Section::enclosing(&[frame(2.0, 1.0)]),
            Some(frame(2.0, 1.0))
        );
        // From −3 to −1 and from 0 to 4.
        let both = Section::enclosing(&[frame(-2.0, 1.0), frame(2.0, 2.0)]);
        assert_eq!(both, Some(frame(0.5, 3.5)));
    }
}
