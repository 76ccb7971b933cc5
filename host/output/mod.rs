//! What is made of bodies for people to look at.

mod colour_map;
pub mod density;
mod framing;
mod image;
pub mod movie;
mod smoothing;
pub mod viewer;

pub use colour_map::{ColourMap, UnknownColourMap};
pub use density::{DensityPicture, PictureError, Projection, Weight};
pub use framing::{Frame, Selection};
pub use image::{Image, Shades};
pub use viewer::Viewer;

/// A word that names none of the choices there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is none of {choices}")]
pub struct UnknownChoice {
    word: String,
    choices: &'static str,
}

impl UnknownChoice {
    fn new(word: &str, choices: &'static str) -> Self {
        Self {
            word: word.to_owned(),
            choices,
        }
    }
}
