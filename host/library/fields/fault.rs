//! Reasons why fields cannot be computed.

use super::Figure;
use crate::settings::Setting;

/// Reason why a field cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// A number that makes no sense.
    #[error("`{parameter}` of the field {field} must be {allowed}, got {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The values that it may have.
        allowed: &'static str,
        /// The value that it was given.
        value: f64,
    },
    /// A centre for a field that is about the origin.
    #[error("the field {0} is about the origin of coordinates and takes no centre")]
    NoCentre(&'static str),
    /// A path that ends before the run.
    #[error(
        "the path of the field {field} is from time {first} to {last}, and the run needs it at time \
         {time}: give more of the path, or end the run earlier"
    )]
    BeyondPath {
        /// The field.
        field: &'static str,
        /// First time of the path.
        first: f64,
        /// Last time of the path.
        last: f64,
        /// Time that is not on it.
        time: f64,
    },
    /// A number of an orbit that is none.
    #[error("`{parameter}` of the orbit must be finite, got {value}")]
    OfOrbit {
        /// The number.
        parameter: &'static str,
        /// The value that it was given.
        value: f64,
    },
    /// An orbit that begins in a singular centre.
    #[error(
        "the orbit begins in the centre of the field {0}, where its acceleration has no direction: give \
         {orbit} another position", orbit = Setting::Orbit
    )]
    OrbitInCentre(&'static str),
    /// A body that begins in a singular centre.
    #[error(
        "body {body} is exactly in the centre of the field {field}, where its acceleration has no direction: \
         move the body, or give the field another centre"
    )]
    BodyInCentre {
        /// The field.
        field: &'static str,
        /// Index of the body.
        body: usize,
    },
    /// An orbit that cannot be followed.
    #[error(
        "the orbit cannot be followed beyond time {time}, where it is at ({}, {}, {}): {why}; end the \
         run earlier, or give another orbit",
        Figure(position[0]), Figure(position[1]), Figure(position[2])
    )]
    OrbitEnds {
        /// Time until which it is known.
        time: f64,
        /// Position there.
        position: [f64; 3],
        /// Why it ends there.
        why: &'static str,
    },
    /// A body that there is not.
    #[error("the field 1pn is of body {body}, and there are {n} bodies, from 0 on")]
    NoBody {
        /// Index of the body.
        body: usize,
        /// Number of bodies.
        n: usize,
    },
    /// A body that is not the heaviest.
    #[error(
        "the field 1pn is of the dominant mass, and body {heavier} is heavier than body {body}: give \
         body={heavier}"
    )]
    NotDominant {
        /// Index of the body.
        body: usize,
        /// Index of a heavier one.
        heavier: usize,
    },
    /// A second body that is not light compared with the dominant one.
    #[error(
        "the field 1pn is of a dominant mass on light bodies, and body {other} has {share:.2} times the mass of \
         body {body}: at most {most} times is light"
    )]
    NotLight {
        /// Index of the dominant body.
        body: usize,
        /// Index of the other one.
        other: usize,
        /// Mass of the second body over the mass of the dominant one.
        share: f64,
        /// The largest share that is light.
        most: f64,
    },
    /// A dominant body that is no more.
    #[error(
        "body {body}, which the field 1pn is of, has escaped and would be taken away: log its escape, or \
         choose a larger radius of escape"
    )]
    DominantGone {
        /// Index of the body.
        body: usize,
    },
    /// The term of two bodies.
    #[error("the field 1pn is of one body, and was given {0} times")]
    TwoDominant(usize),
}
