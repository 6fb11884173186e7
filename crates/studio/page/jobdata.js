// What a job has to show, in any form that the server sends it.

import { get, getBytes } from "./api.js";
import { readRecording } from "./recording.js";

/** A job whole: {job, runs, comparison, files}. */
export async function jobWhole(id, signal) {
  const job = await get(`/api/jobs/${id}`, signal);
  const from = job.results ?? job;
  const files = from.files ?? [];
  const runs = (from.runs ?? []).map((run, at) => ({
    ...run,
    // Of a comparison under way only the finished ones are listed.
    index: run.run ?? at,
    label: run.label ?? [run.scheme, run.seed !== undefined && `seed ${run.seed}`].filter(Boolean).join(", "),
    labels: run.labels ?? [],
  }));
  for (const run of runs)
    run.files ??= job.kind === "run" ? files : files.filter(({ path }) => path.startsWith(`runs/${run.index}/`));
  return { job, runs, comparison: from.comparison ?? null, files };
}

const cache = new Map();
/** The recording of a run; the last few are kept. */
export async function recordingOf(job, run, signal) {
  const key = `${job}/${run}`;
  if (!cache.has(key)) {
    const reading = getBytes(`/api/jobs/${job}/recording/${run}`, signal).then(readRecording);
    reading.catch(() => cache.delete(key));
    cache.set(key, reading);
    if (cache.size > 4) cache.delete(cache.keys().next().value);
  }
  return cache.get(key);
}
export const forgetRecordings = (job) => {
  for (const key of [...cache.keys()]) if (key.startsWith(`${job}/`)) cache.delete(key);
};
