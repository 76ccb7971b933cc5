//! Stub.
use super::vector::Vector;
pub(crate) const CAPACITY: usize = 8;
pub(crate) const TOLERANCE: f64 = 1e-11;
#[derive(Debug)]
pub(crate) struct Stuck;
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chain { time: f64 }
pub(crate) trait External { const ANY: bool = true; fn accelerations(&mut self, time: f64, x: &[Vector], a: &mut [Vector]); }
impl Chain {
    pub(crate) fn new(_: f64, _: &[f64], _: &[Vector], _: &[Vector]) -> Option<Self> { None }
    pub(crate) fn time(&self) -> f64 { self.time }
    pub(crate) fn set_time(&mut self, time: f64) { self.time = time }
    pub(crate) fn positions(&self) -> [Vector; CAPACITY] { [[0.0; 3]; CAPACITY] }
    pub(crate) fn velocities(&self) -> [Vector; CAPACITY] { [[0.0; 3]; CAPACITY] }
    pub(crate) fn energy(&self) -> f64 { 0.0 }
    pub(crate) fn size(&self) -> f64 { 0.0 }
    pub(crate) fn longest_link(&self) -> usize { 0 }
    pub(crate) fn order(&self) -> &[usize] { &[] }
    pub(crate) fn advance(&mut self, _: f64, _: f64, _: &mut impl External) -> Result<u32, Stuck> { Err(Stuck) }
    pub(crate) fn put(&self, _: &mut Vec<f64>) {}
    pub(crate) fn read(_: &[f64], _: &mut dyn FnMut() -> Option<f64>) -> Option<Self> { None }
}
