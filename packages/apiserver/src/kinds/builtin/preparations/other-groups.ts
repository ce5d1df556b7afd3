/** What becomes of objects of other groups than the core group, between their defaults and their store. */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isObject, type JsonObject, listAt, objectAt, textAt } from '@coracle/apimachinery/types/read-value';
import type { UpdateStrategy } from '@coracle/apimachinery/types/strategy';
import { CONTROLLER_UID } from '../defaults/workloads.ts';

/** Topology is a field of EndpointSlices of the time before v1 (endpointslice/strategy.go). */
export function dropTopology(slice: Record<string, unknown>): void {
  if (!Array.isArray(slice['endpoints'])) return;
  slice['endpoints'] = slice['endpoints'].map((endpoint) => {
    if (!isObject(endpoint) || endpoint['deprecatedTopology'] === undefined) return endpoint;
    const { deprecatedTopology: _, ...kept } = endpoint;
    return kept;
  });
}

/** Endpoints that stay as they are keep it. */
export function dropNewTopology(slice: Record<string, unknown>, old: JsonObject): void {
  if (!deepEqual(listAt(slice, 'endpoints'), listAt(old, 'endpoints'))) dropTopology(slice);
}

/**
 * A new Job selects its Pods by its own uid, unless its user does the selecting; what else the user says is validated later
 * (job/strategy.go).
 */
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

interface Condition {
  type: string;
  status?: string;
}

interface Status {
  conditions?: Condition[];
}

/** Approval and denial are given through `/approval` alone. */
const DECISIONS = ['Approved', 'Denied'];

/**
 * A CertificateSigningRequest with its old spec and a status made of the two; changes `object`. The approval endpoint writes
 * conditions, the status endpoint everything but what a decision says (pkg/registry/certificates).
 */
const keeping =
  (statusOf: (wanted: Status, before: Status) => Status): UpdateStrategy['keepUnwritten'] =>
  (object, old) => {
    object['spec'] = cloneJson(old['spec']);
    const status = statusOf((object['status'] ?? {}) as Status, cloneJson(old['status'] ?? {}) as Status);
    if (Object.keys(status).length > 0) object['status'] = status;
    else delete object['status'];
    return object;
  };

/** What each endpoint of a request leaves as it was. */
export const keepRequest = keeping((_wanted, before) => before);
export const keepAllButApproval = keeping((wanted, { conditions: _, ...rest }) => ({
  ...rest,
  ...(wanted.conditions && { conditions: wanted.conditions }),
}));
export const keepDecisions = keeping((wanted, before) =>
  wanted.conditions ? { ...wanted, conditions: withDecisions(wanted.conditions, before.conditions ?? []) } : wanted,
);

/** With the decisions as they were given. Where there are more or fewer of them, admission refuses. */
function withDecisions(wanted: readonly Condition[], before: readonly Condition[]): Condition[] {
  const next = [...wanted];
  for (const decision of DECISIONS) {
    const given = before.filter(({ type }) => type === decision);
    const places = [...next.keys()].filter((at) => next[at]!.type === decision);
    if (given.length === places.length) for (const [i, at] of places.entries()) next[at] = given[i]!;
  }
  return next;
}
