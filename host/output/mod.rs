//! What is made of bodies for people to look at.

pub mod density;
mod smoothing;

pub use density::{DensityPicture, Frame, Image, PictureError, Projection, Selection, Weight};
