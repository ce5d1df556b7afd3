/** Hears what the admission plugins before and after it note for the audit log. */
import type { AdmissionAttributes, AdmissionPlugin } from '../../packages/apiserver/src/admission/plugin.ts';

export interface AdmissionRecorder {
  /** What was noted since the last `clear()`, by key. */
  readonly annotations: Map<string, string>;
  readonly plugin: AdmissionPlugin;
}

/** A recorder for one server: give `plugin` to it. What it records still reaches the log. */
export function createAdmissionRecorder(): AdmissionRecorder {
  const annotations = new Map<string, string>();
  const listen = (attributes: AdmissionAttributes): void => {
    const { annotate } = attributes;
    (attributes as { annotate: AdmissionAttributes['annotate'] }).annotate = (key, value) => {
      annotations.set(key, value);
      annotate(key, value);
    };
  };
  return { annotations, plugin: { name: 'Recorder', matches: () => true, mutate: listen, validate: listen } };
}
