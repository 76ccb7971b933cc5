//! Finished pixels.

use std::io::{self, Write};

use super::ColourMap;

/// A finished picture: rows from top to bottom, three bytes (red, green, blue) a pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `3 × width × height` bytes.
    pub rgb: Vec<u8>,
}

impl Image {
    /// Writes the picture as PNG.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_png(&self, file: &mut impl Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // Half as large again as by default, in a tenth of the time: short runs wait for little else.
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        Ok(writer.finish()?)
    }
}

/// A picture before it is coloured: a shade a pixel, rows from top to bottom.
#[derive(Clone, Debug, PartialEq)]
pub struct Shades {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `width × height` shades from 0, dark, to 1, bright.
    pub values: Vec<f32>,
}

impl Shades {
    /// The picture in colour.
    pub fn image(&self, colours: ColourMap) -> Image {
        // More steps than a byte has values: no bands where a colour changes slowly.
        let palette = colours.steps(1024);
        let colour = |&shade: &f32| palette[(1023.0 * shade.clamp(0.0, 1.0)) as usize];
        Image {
            width: self.width,
            height: self.height,
            rgb: self.values.iter().flat_map(colour).collect(),
        }
    }

    /// Each pixel's place in a palette of 256 steps.
    pub(super) fn indices(&self) -> Vec<u8> {
        let index = |&shade: &f32| (255.0 * shade.clamp(0.0, 1.0)).round() as u8;
        self.values.iter().map(index).collect()
    }
}
