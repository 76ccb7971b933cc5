"use strict";
// The data: see host/library/output/viewer.rs, which writes it. `about` tells the snapshots' times and
// numbers of bodies and how coordinates are packed; script `#f0` holds the first snapshot, and so on.
// The unit of length is the distance from the centre within which most of the bodies are.
const about = JSON.parse(document.getElementById("about").textContent);
const element = (id) => document.getElementById(id);
const count = about.times.length;
const canvas = element("sky");
const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, preserveDrawingBuffer: location.hash === "#check" });

function fail(text) {
  element("fault").textContent = text;
  element("fault").hidden = false;
  throw new Error(text);
}
if (!gl) fail("This page draws with WebGL 2, which this browser does not offer, or has turned off.");

// ---- programs ---------------------------------------------------------------------------------
function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) fail(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  ["q0", "q1", "q2", "q3", "s1", "s2", "kind"].forEach((name, i) => gl.bindAttribLocation(made, i, name));
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) fail(gl.getProgramInfoLog(made));
  const uniforms = {};
  for (let i = gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) - 1; i >= 0; i--) {
    const { name } = gl.getActiveUniform(made, i);
    uniforms[name.replace("[0]", "")] = gl.getUniformLocation(made, name);
  }
  return { made, uniforms };
}
const space = `
uniform mat3 turn; uniform vec3 focus; uniform vec4 lens; // 1/tan across, 1/tan up, distance
vec4 project(vec3 place) {
  vec3 seen = turn * (place - focus);
  float depth = lens.z - seen.z;
  return vec4(seen.xy * lens.xy, depth * 0.5, depth);
}
// A smooth curve through four places (Catmull and Rom 1974), from the second to the third.
vec3 between(vec3 a, vec3 b, vec3 c, vec3 d, float t) {
  return b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)));
}
uniform vec2 unpack; // length, range
vec3 place(vec3 q) { return unpack.x * sinh(unpack.y * (q * 65535.0 - 32767.0) / 32767.0); }
`;
const bodies = program(space + `
in vec3 q0, q1, q2, q3; in float s1, s2; in float kind;
uniform float part, size, light, nearest; uniform int mode; uniform vec3 kinds[3]; uniform vec3 shown;
uniform sampler2D colours;
out vec3 colour;
void main() {
  gl_Position = project(between(place(q0), place(q1), place(q2), place(q3), part));
  float wanted = size * lens.z / gl_Position.w;
  // What is smaller than a pixel gets fainter instead; what comes too close does not fill the view.
  gl_PointSize = clamp(wanted, nearest, 90.0);
  float fade = clamp(wanted * wanted / (nearest * nearest), 0.15, 1.0) * smoothstep(0.02, 0.1, gl_Position.w / lens.z);
  vec3 tint = mode == 0 ? textureLod(colours, vec2(mix(s1, s2, part), 0.5), 0.0).rgb
            : mode == 1 ? kinds[int(kind + 0.5)] : vec3(1.0, 0.86, 0.7);
  colour = tint * tint * light * fade;
  if (shown[int(kind + 0.5)] < 0.5) gl_Position = vec4(2.0, 2.0, 2.0, 1.0); // out of sight
}`, `
in vec3 colour; out vec4 paint;
void main() {
  vec2 at = 2.0 * gl_PointCoord - 1.0;
  float r = dot(at, at);
  if (r > 1.0) discard;
  paint = vec4(colour * (exp(-4.5 * r) - 0.011), 1.0);
}`);
const trails = program(space + `
in vec3 q0; in float s1;
uniform float now, light, trail; uniform vec3 tint;
out vec3 colour;
void main() {
  gl_Position = project(q0);
  float age = now - s1;
  colour = tint * light * (age < 0.0 ? 0.0 : exp(-age / trail));
}`, `in vec3 colour; out vec4 paint; void main() { paint = vec4(colour, 1.0); }`);
const develop = program(`
out vec2 at; void main() { at = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0; gl_Position = vec4(at * 2.0 - 1.0, 0.0, 1.0); }`, `
in vec2 at; uniform sampler2D light; out vec4 paint;
void main() {
  vec3 c = texture(light, at).rgb;
  float most = max(c.r, max(c.g, c.b));
  // As film: light adds up, shades saturate; only what is very bright turns white.
  vec3 toned = c * (1.0 - exp(-1.6 * most)) / max(most, 1e-6);
  toned = mix(toned, vec3(1.0), 0.7 * smoothstep(1.2, 9.0, most));
  float grain = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5;
  paint = vec4(pow(toned, vec3(1.0 / 2.2)) + grain / 255.0, 1.0);
}`);

// ---- data -------------------------------------------------------------------------------------
function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text), out = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) out[i] = packed.charCodeAt(i);
  return out;
}
function buffer(data) {
  const made = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, made);
  gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
  return made;
}
const frames = new Array(count);
const few = about.few && count > 2;
const named = about.names.length === about.counts[0] && about.names.length > 0;
const paths = [];
function load(index) {
  if (frames[index]) return;
  const script = element("f" + index), data = bytes(script.textContent), n = about.counts[index];
  script.remove();
  frames[index] = { places: buffer(data.subarray(0, 6 * n)), speeds: buffer(data.subarray(6 * n, 7 * n)), kinds: buffer(data.subarray(7 * n)) };
  if (few || named) paths[index] = new Uint16Array(data.slice(0, 6 * n).buffer);
}
let loaded = 0;
const colours = gl.createTexture();
gl.bindTexture(gl.TEXTURE_2D, colours);
gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB8, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, bytes(about.colours));
for (const [name, value] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]])
  gl.texParameteri(gl.TEXTURE_2D, name, value);

// Trails of a few bodies: smooth curves through their snapshots, made once all are there.
const STEPS = 8;
let curves = null;
const place = (k, at) => about.pack[0] * Math.sinh(about.pack[1] * (paths[Math.min(Math.max(k, 0), count - 1)][at] - 32767) / 32767);
// As `between` above, of coordinate `at` of the snapshots.
function along(k, t, at) {
  const [a, b, c, d] = [k - 1, k, k + 1, k + 2].map((j) => place(j, at));
  return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}
function trace() {
  const n = about.counts[0], points = (count - 1) * STEPS + 1;
  const data = new Float32Array(4 * n * points);
  for (let body = 0, out = 0; body < n; body++)
    for (let i = 0; i < points; i++) {
      const k = Math.min(Math.floor(i / STEPS), count - 2), t = i / STEPS - k;
      for (let axis = 0; axis < 3; axis++) data[out++] = along(k, t, 3 * body + axis);
      data[out++] = k + t;
    }
  curves = { buffer: buffer(data), points, bodies: n };
}

// ---- light, collected in more than eight bits -----------------------------------------------------
const deep = gl.getExtension("EXT_color_buffer_float") || gl.getExtension("EXT_color_buffer_half_float");
const film = gl.createFramebuffer(), exposed = gl.createTexture();
let width = 0, height = 0;
function resize() {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [w, h] = [Math.max(1, Math.round(innerWidth * ratio)), Math.max(1, Math.round(innerHeight * ratio))];
  if (w === width && h === height) return;
  [canvas.width, canvas.height] = [width, height] = [w, h];
  gl.bindTexture(gl.TEXTURE_2D, exposed);
  gl.texImage2D(gl.TEXTURE_2D, 0, deep ? gl.RGBA16F : gl.RGBA8, w, h, 0, gl.RGBA, deep ? gl.HALF_FLOAT : gl.UNSIGNED_BYTE, null);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  gl.bindFramebuffer(gl.FRAMEBUFFER, film);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, exposed, 0);
}

// ---- view -------------------------------------------------------------------------------------
const SPREAD = Math.tan(Math.PI / 10), START = 1.05 / SPREAD;
// Nearer than this, the steps would show in which places are packed.
const NEAREST = Math.max(START * 1e-4, 100 * about.pack[0] * about.pack[1] / 32767 / SPREAD);
let turn, focus, distance;
function rotation(axis, angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return axis === 0 ? [1, 0, 0, 0, c, -s, 0, s, c] : axis === 1 ? [c, 0, s, 0, 1, 0, -s, 0, c] : [c, -s, 0, s, c, 0, 0, 0, 1];
}
function times(a, b) { // rows of a, columns of b
  return [0, 3, 6].flatMap((r) => [0, 1, 2].map((c) => a[r] * b[c] + a[r + 1] * b[c + 3] + a[r + 2] * b[c + 6]));
}
function orthonormal(m) { // rounding must not turn turns into stretches
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2], unit = (v) => v.map((x) => x / Math.sqrt(dot(v, v)));
  const x = unit(m.slice(0, 3)), y0 = m.slice(3, 6), y = unit(y0.map((v, i) => v - dot(x, y0) * x[i]));
  return [...x, ...y, x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
}
function spin(across, up) { turn = orthonormal(times(times(rotation(0, up), rotation(1, across)), turn)); changed = true; }
function reset() {
  turn = times(rotation(0, about.flat ? 0 : -0.95), rotation(2, about.flat ? 0 : 0.4));
  focus = [0, 0, 0];
  distance = START;
  changed = true;
}
function zoom(factor) { distance = Math.min(Math.max(distance * factor, NEAREST), START * 1e3); changed = true; }
function move(dx, dy) { // pixels of the page
  const length = 2 * SPREAD * distance / Math.min(innerWidth, innerHeight);
  for (let i = 0; i < 3; i++) focus[i] -= length * (dx * turn[i] - dy * turn[3 + i]);
  changed = true;
}

let changed = true, playing = false, at = 0, mode = 0;
const seen = [true, !about.hides_dark, true]; // kinds
const kinds = [["gas", [0.35, 0.75, 1]], ["dark", [0.55, 0.4, 0.95]], ["star", [1, 0.8, 0.52]]];

function bind(location, data, size, type, normalised) {
  gl.bindBuffer(gl.ARRAY_BUFFER, data);
  gl.enableVertexAttribArray(location);
  gl.vertexAttribPointer(location, size, type, normalised, 0, 0);
}
function lensOf(uniforms) {
  const side = Math.min(width, height);
  gl.uniformMatrix3fv(uniforms.turn, true, turn);
  gl.uniform3fv(uniforms.focus, focus);
  gl.uniform4f(uniforms.lens, side / width / SPREAD, side / height / SPREAD, distance, 0);
}
function litAt(k) {
  return Math.max(about.counts[k] - about.kinds[k].reduce((hidden, of, kind) => hidden + (seen[kind] ? 0 : of), 0), 1);
}
// Diameter of a body at the distance of the centre, in pixels of the page.
function diameter(lit) {
  return Math.min(Math.max(180 / Math.sqrt(lit), 3.6), 22) * 2 ** element("size").value * (START / distance) ** 0.8;
}
function draw() {
  resize();
  let k = Math.min(Math.floor(at), count - 1), part = at - k;
  if (!about.tracked) part = 0;
  const near = [k - 1, k, k + 1, k + 2].map((i) => Math.min(Math.max(i, 0), count - 1)).map((i) => (about.tracked ? i : k));
  near.forEach(load);
  const n = about.counts[k], ratio = height / innerHeight, lit = litAt(k);
  gl.bindFramebuffer(gl.FRAMEBUFFER, film);
  gl.viewport(0, 0, width, height);
  gl.clearColor(0, 0, 0, 1);
  gl.clear(gl.COLOR_BUFFER_BIT);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE);
  const light = Math.min(Math.max(2.6 * (300 / lit) ** 0.36, 0.05), 2.6) * 2 ** element("brightness").value;
  if (few && loaded === count) {
    if (!curves) trace();
    const { made, uniforms } = trails;
    gl.useProgram(made);
    lensOf(uniforms);
    gl.uniform1f(uniforms.now, at);
    gl.uniform1f(uniforms.light, 0.22 * light);
    gl.uniform1f(uniforms.trail, Math.max(count / 6, 3));
    gl.uniform3f(uniforms.tint, 0.45, 0.6, 1);
    for (let i = 1; i < 7; i++) gl.disableVertexAttribArray(i);
    gl.bindBuffer(gl.ARRAY_BUFFER, curves.buffer);
    gl.enableVertexAttribArray(0);
    gl.enableVertexAttribArray(4);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 16, 0);
    gl.vertexAttribPointer(4, 1, gl.FLOAT, false, 16, 12);
    for (let i = 0; i < curves.bodies; i++) if (!about.untraced.includes(i)) gl.drawArrays(gl.LINE_STRIP, i * curves.points, curves.points);
  }
  const { made, uniforms } = bodies;
  gl.useProgram(made);
  lensOf(uniforms);
  near.forEach((i, location) => bind(location, frames[i].places, 3, gl.UNSIGNED_SHORT, true));
  bind(4, frames[near[1]].speeds, 1, gl.UNSIGNED_BYTE, true);
  bind(5, frames[near[2]].speeds, 1, gl.UNSIGNED_BYTE, true);
  bind(6, frames[k].kinds, 1, gl.UNSIGNED_BYTE, false);
  gl.uniform2fv(uniforms.unpack, about.pack);
  gl.uniform1f(uniforms.part, part);
  gl.uniform1f(uniforms.size, ratio * diameter(lit));
  gl.uniform1f(uniforms.nearest, 2.2 * ratio);
  gl.uniform1f(uniforms.light, light);
  gl.uniform1i(uniforms.mode, mode);
  gl.uniform3fv(uniforms.shown, seen.map(Number));
  gl.uniform3fv(uniforms.kinds, kinds.flatMap(([, colour]) => colour));
  gl.uniform1i(uniforms.colours, 0);
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, colours);
  gl.drawArrays(gl.POINTS, 0, n);

  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.disable(gl.BLEND);
  gl.useProgram(develop.made);
  gl.bindTexture(gl.TEXTURE_2D, exposed);
  gl.uniform1i(develop.uniforms.light, 0);
  for (let i = 0; i < 7; i++) gl.disableVertexAttribArray(i);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
}

// ---- names ------------------------------------------------------------------------------------
const labels = named ? about.names.map((name) => element("names").appendChild(Object.assign(document.createElement("span"), { textContent: name }))) : [];
function name() {
  const k = Math.min(Math.floor(at), count - 1), taken = [], side = Math.min(innerWidth, innerHeight), size = diameter(litAt(k));
  for (const [body, label] of labels.entries()) {
    const p = [0, 1, 2].map((axis) => along(k, at - k, 3 * body + axis) - focus[axis]);
    const [x, y, z] = [0, 3, 6].map((row) => turn[row] * p[0] + turn[row + 1] * p[1] + turn[row + 2] * p[2]);
    const depth = distance - z, scale = side / SPREAD / depth / 2;
    const [left, top] = [innerWidth / 2 + x * scale, innerHeight / 2 - y * scale];
    // Of names that would cover each other, the first is shown.
    const hidden = depth <= 0 || taken.some(([l, t]) => Math.abs(l - left) < 58 && Math.abs(t - top) < 14);
    if (!hidden) taken.push([left, top]);
    label.style.visibility = hidden ? "hidden" : "visible";
    const beside = 4 + Math.min(size * distance / Math.max(depth, 1e-30), 90) / 3; // most of a disc's light is within
    label.style.transform = `translate(${left + beside}px, ${top - 9}px)`;
  }
}

// ---- words and numbers ------------------------------------------------------------------------
const tidy = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2).replace("e+", "e") : String(+x.toPrecision(4)));
const [lengths, periods, paces] = about.units;
const unit = (of) => (of.name ? " " + of.name : "");
function timeAt() {
  const k = Math.min(Math.floor(at), count - 1), next = Math.min(k + 1, count - 1);
  return periods.factor * (about.times[k] + (about.tracked ? (at - k) * (about.times[next] - about.times[k]) : 0));
}
function say() {
  const span = periods.factor * Math.abs(about.times[count - 1] - about.times[0]);
  const digits = span > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(span)), 0), 8) : 0;
  const time = timeAt();
  const now = "t = " + (span === 0 || Math.abs(time) >= 1e6 || span < 1e-6 ? tidy(time) : time.toFixed(digits)) + unit(periods);
  element("now").textContent = now;
  element("time").value = at;
  element("time").setAttribute("aria-valuetext", now);
  element("time").style.setProperty("--done", (100 * at) / Math.max(count - 1, 1) + "%");
  const length = lengths.factor * 2 * SPREAD * distance / Math.min(innerWidth, innerHeight); // of a pixel of the page
  const raw = 110 * length, power = 10 ** Math.floor(Math.log10(raw)), nice = power * [5, 2, 1].find((m) => m * power <= raw);
  element("scale").firstChild.style.width = nice / length + "px";
  element("scale").lastChild.textContent = tidy(nice) + unit(lengths);
}
const grouped = (n) => n.toLocaleString("en").replaceAll(",", "\u2009");
let told = null;
function tell() { // what changes from snapshot to snapshot
  const k = Math.min(Math.floor(at), count - 1), all = about.bodies[k], shown = about.counts[k];
  if (k === told) return;
  told = k;
  element("facts").textContent = [
    `${grouped(all)} ${all === 1 ? "body" : "bodies"}` + (shown < all ? `, ${grouped(shown)} shown` : ""),
    ...(count > 1 ? [`${grouped(count)} snapshots`] : []),
    ...(about.untraced.length ? [`too far apart to trace ${grouped(about.untraced.length)} of the bodies`] : []),
  ].join(" · ");
  if (mode === 1) show(mode);
}
function show(chosen) {
  mode = chosen;
  changed = true;
  [...element("colour").children].forEach((button) => button.setAttribute("aria-pressed", String(+button.dataset.mode === mode)));
  const legend = element("legend");
  legend.replaceChildren();
  if (mode === 0) {
    const strip = document.createElement("canvas"), map = bytes(about.colours);
    [strip.width, strip.height] = [256, 1];
    const pen = strip.getContext("2d"), row = pen.createImageData(256, 1);
    for (let i = 0; i < 256; i++) row.data.set([map[3 * i], map[3 * i + 1], map[3 * i + 2], 255], 4 * i);
    pen.putImageData(row, 0, 0);
    const ends = document.createElement("div"), title = document.createElement("p");
    title.textContent = "speed" + (paces.name ? " [" + paces.name + "]" : "");
    for (const speed of new Set(about.speeds)) ends.append(Object.assign(document.createElement("span"), { textContent: tidy(paces.factor * speed) }));
    legend.append(title, strip, ends);
  } else if (mode === 1) {
    for (const [index, [name, colour]] of kinds.entries()) {
      const of = about.kinds[Math.min(Math.floor(at), count - 1)][index];
      if (!of) continue;
      const row = document.createElement("span"), dot = document.createElement("b");
      dot.style.background = `rgb(${colour.map((c) => Math.round(255 * c))})`;
      row.append(dot, `${name} ${grouped(of)}`);
      row.style.display = "block";
      legend.append(row);
    }
  }
}
function setPlaying(value) {
  playing = value && count > 1;
  if (playing && at >= count - 1) at = 0;
  element("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  element("play").querySelector("path").setAttribute("d", playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 1.5v13L14.5 8z");
}
function seek(value) { at = Math.min(Math.max(value, 0), count - 1); changed = true; }

for (const [index, name] of ["speed", "kind", "plain"].entries()) {
  const button = Object.assign(document.createElement("button"), { textContent: name });
  button.dataset.mode = index;
  button.addEventListener("click", () => show(index));
  element("colour").append(button);
}
const several = kinds.filter((_, kind) => about.kinds.some((of) => of[kind])).length > 1;
element("colour").children[1].hidden = !several; // one kind tells nothing
element("dark").parentElement.hidden = !about.hides_dark;
element("dark").addEventListener("change", () => { seen[1] = element("dark").checked; changed = true; });
element("time").max = count - 1;
document.documentElement.classList.toggle("still", count < 2);
element("play").addEventListener("click", () => setPlaying(!playing));
element("time").addEventListener("input", () => { setPlaying(false); seek(+element("time").value); });
for (const id of ["brightness", "size"]) {
  const slider = element(id), fill = () => slider.style.setProperty("--done", (100 * (slider.value - slider.min)) / (slider.max - slider.min) + "%");
  slider.addEventListener("input", () => { fill(); changed = true; });
  fill();
}

// ---- hands ------------------------------------------------------------------------------------
const fingers = new Map();
const used = () => document.documentElement.classList.add("used");
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, [event.clientX, event.clientY]);
  canvas.classList.add("dragging");
});
canvas.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const now = [event.clientX, event.clientY], [dx, dy] = [now[0] - before[0], now[1] - before[1]];
  if (fingers.size === 2) {
    const other = [...fingers.entries()].find(([id]) => id !== event.pointerId)[1];
    zoom(Math.hypot(before[0] - other[0], before[1] - other[1]) / Math.max(Math.hypot(now[0] - other[0], now[1] - other[1]), 1));
    move(dx / 2, dy / 2);
  } else if (event.buttons & 2 || event.shiftKey) move(dx, dy);
  else spin(dx * 0.006, dy * 0.006);
  fingers.set(event.pointerId, now);
  used();
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
  fingers.delete(event.pointerId);
  if (!fingers.size) canvas.classList.remove("dragging");
});
canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) * 0.0012)); used(); }, { passive: false });
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("dblclick", reset);
addEventListener("resize", () => { changed = true; });
addEventListener("keydown", (event) => {
  const { tagName, type } = event.target, ofElement = event.key === " " ? tagName === "BUTTON" || type === "checkbox" : tagName === "INPUT";
  if (ofElement || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    " ": () => setPlaying(!playing), ArrowLeft: () => spin(-0.08, 0), ArrowRight: () => spin(0.08, 0),
    ArrowUp: () => spin(0, -0.08), ArrowDown: () => spin(0, 0.08), "+": () => zoom(0.9), "=": () => zoom(0.9), "-": () => zoom(1 / 0.9),
    ",": () => { setPlaying(false); seek(Math.ceil(at) - 1); }, ".": () => { setPlaying(false); seek(Math.floor(at) + 1); },
    Home: () => seek(0), End: () => seek(count - 1), r: reset,
  }[event.key];
  if (act) { event.preventDefault(); act(); used(); }
});
canvas.addEventListener("webglcontextlost", () => fail("The graphics processor was taken away; reload the page."));

// ---- time -------------------------------------------------------------------------------------
// The whole series takes 3 to 20 seconds to play, each snapshot as long as it is from the next.
const LENGTH = Math.min(Math.max((count - 1) / 12, 3), 20);
const spans = about.times.slice(1).map((time, k) => time - about.times[k]);
const whole = spans.reduce((sum, span) => sum + span, 0);
function advance(seconds) {
  let left = seconds / LENGTH;
  while (left > 0 && at < count - 1) {
    const k = Math.floor(at), share = whole > 0 ? spans[k] / whole : 1 / (count - 1), rest = (k + 1 - at) * share;
    at = left < rest ? at + left / share : k + 1;
    left -= rest;
  }
}
let last = null, first = true;
function tick(now) {
  const passed = last === null ? 0 : Math.min((now - last) / 1000, 0.1);
  last = now;
  const until = performance.now() + 8; // the rest of the data, without holding up the view
  while (!first && loaded < count && performance.now() < until) { load(loaded++); changed = true; }
  if (playing) {
    advance(passed);
    if (at >= count - 1) setPlaying(false);
    changed = true;
  }
  if (changed) {
    changed = false;
    draw();
    say();
    tell();
    name();
    if (first) drawn();
    first = false;
  }
  requestAnimationFrame(tick);
}
// With `#check` in its address the page says in its title whether it drew anything.
function drawn() {
  document.documentElement.dataset.drawn = "";
  if (location.hash !== "#check") return;
  const pixels = new Uint8Array(4 * width * height);
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  const lit = pixels.some((value, i) => i % 4 < 3 && value > 40), fault = gl.getError();
  document.title = fault ? "fault " + fault : lit ? "ok" : "dark";
}
setPlaying(false);
reset();
show(0);
requestAnimationFrame(tick);
