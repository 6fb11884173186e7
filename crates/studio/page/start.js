// The example that a newcomer meets first: an incast, and flows that only pass by, under two schemes.

import { jobs } from "./api.js";
import { ASK } from "./why.js";

export const START = {
  name: "An incast, and those who only pass by",
  schemes: ["pfc", "bfc"],
  text: `# Twenty-four hosts answer one at the same time. Others only share its leaf switch, or the links on the path.
name = "An incast, and those who only pass by"

[topology]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 8
spines = 4

[switch]
buffer = "3MB"

# The incast: every host outside the first rack sends to h0.
[[incast]]
name = "incast"
degree = 24
size_each = "250KB"
from = ["leaf1", "leaf2", "leaf3"]
to = "h0"
start = "30us"
count = 1

# Flows that have nothing to do with h0, but meet the incast on their path.
[[load]]
name = "passers-by"
sizes = "uniform 20KB..200KB"
load = 0.25
duration = "500us"
pattern = "inter-rack"
to = ["h1..h7", "leaf1", "leaf2", "leaf3"]
`,
};

/** Runs it and opens the fabric view, which waits for it. */
export async function startHere() {
  const id = await jobs.start({
    kind: "compare",
    name: START.name,
    text: START.text,
    schemes: START.schemes,
    seeds: 1,
    sets: [ASK],
    record: true,
  });
  location.hash = `#/fabric?job=${id}&run=0&with=1&play=1`;
}
