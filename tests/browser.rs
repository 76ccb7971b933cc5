//! The page of `allpairs view` in a real browser: does it draw? Skipped, aloud, where there is no
//! Chromium.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::program::galaxy;

fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
}

/// A page of two snapshots, the second with its bodies in another order.
fn page(folder: &Path) -> PathBuf {
    let (first, _) = allpairs::io::read(&galaxy(), None).unwrap();
    let mut second = first.clone();
    second.time += 1.0;
    second.bodies = (0..first.bodies.len())
        .rev()
        .map(|i| first.bodies.body(i))
        .collect();
    let path = folder.join("page.html");
    let mut viewer = allpairs::output::Viewer::new("Two snapshots", 10_000);
    viewer.add(&first).unwrap();
    viewer.add(&second).unwrap();
    viewer
        .write(&path, allpairs::io::Overwrite::Refuse)
        .unwrap();
    path
}

/// The title of the page once it has drawn, which with `#check` tells what came of it; and the page as it
/// is then.
fn drawn(chromium: &str, page: &Path, folder: &Path) -> (String, String) {
    let output = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--use-angle=swiftshader"])
        .args([
            "--enable-unsafe-swiftshader",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args([
            "--disable-sync",
            "--window-size=640,480",
            "--virtual-time-budget=10000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg("--dump-dom")
        .arg(format!("file://{}#check", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let head = dom.split_once("<title>").expect("a page").1;
    let title = head.split_once("</title>").expect("a title").0.to_owned();
    (title, dom)
}

#[test]
fn the_page_draws_the_bodies() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: there is no Chromium here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = page(folder.path());
    let (title, dom) = drawn(chromium, &path, folder.path());
    assert_eq!(title, "ok");
    let facts = "20\u{2009}000 bodies, 10\u{2009}000 shown · 2 snapshots";
    assert!(dom.contains(facts), "no {facts}");

    // The check can fail: without light nothing is to be seen, and a broken shader is a fault.
    let page = std::fs::read_to_string(&path).unwrap();
    let broken = |from: &str, to: &str| {
        assert!(page.contains(from), "{from}");
        let path = folder.path().join("broken.html");
        std::fs::write(&path, page.replace(from, to)).unwrap();
        drawn(chromium, &path, folder.path()).0
    };
    assert_eq!(broken("tint * tint * light * fade", "vec3(0.0)"), "dark");
    assert_eq!(broken("vec4 project(", "vec4 projected("), "Two snapshots");
}
