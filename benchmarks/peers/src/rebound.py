# REBOUND as a peer: see peer.rs for what is read and printed.
import ctypes
import sys
import time

import rebound

lines = sys.stdin.read().splitlines()
sim = rebound.Simulation()
sim.G, sim.softening = map(float, lines[0].split())
sim.gravity = "basic"
for line in lines[1:]:
    x, y, z, mass = map(float, line.split())
    sim.add(m=mass, x=x, y=y, z=z)

accelerate = rebound.clibrebound.reb_simulation_update_acceleration
accelerate(ctypes.byref(sim))
seconds = []
for _ in range(5):
    start = time.perf_counter()
    accelerate(ctypes.byref(sim))
    seconds.append(time.perf_counter() - start)

print(rebound.__version__)
print(*seconds)
for p in sim.particles:
    print(p.ax, p.ay, p.az)
