/** What becomes of a new Job between its defaults and its store (job/strategy.go). */

import { isObject, objectAt, textAt } from '@coracle/apimachinery/types/read-value';
import { CONTROLLER_UID } from '../defaults/workloads.ts';

/** A new Job selects its Pods by its own uid, unless its user does the selecting; what else the user says is validated later. */
export function prepareNewJob(job: Record<string, unknown>): void {
  const { spec } = job;
  if (!isObject(spec) || spec['manualSelector'] === true || !isObject(spec['template'])) return;
  const [uid, name] = [textAt(job, 'metadata', 'uid'), textAt(job, 'metadata', 'name')];
  const generated = {
    'controller-uid': uid,
    'job-name': name,
    [CONTROLLER_UID]: uid,
    'batch.kubernetes.io/job-name': name,
  };
  const labels = { ...generated, ...objectAt(spec, 'template', 'metadata', 'labels') };
  const matchLabels = { [CONTROLLER_UID]: uid, ...objectAt(spec, 'selector', 'matchLabels') };
  const metadata = { ...objectAt(spec, 'template', 'metadata'), labels };
  job['spec'] = {
    ...spec,
    selector: { ...objectAt(spec, 'selector'), matchLabels },
    template: { ...spec['template'], metadata },
  };
  const own = job['metadata'];
  if (isObject(own) && Object.keys(objectAt(own, 'labels')).length === 0) Object.assign(own, { labels: { ...labels } });
}
