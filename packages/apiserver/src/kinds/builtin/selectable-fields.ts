/** Field selectors of the built-in kinds, beside metadata.name and metadata.namespace which every kind has. */
import { isTrueAt, type JsonObject, numberAt, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';

type Reader = (object: JsonObject) => string;

const text =
  (path: string): Reader =>
  (object) =>
    textAt(object, ...path.split('.'));

const texts = (...paths: string[]): Record<string, Reader> =>
  Object.fromEntries(paths.map((path) => [path, text(path)]));

const OBJECT_FIELDS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

/** Reads the first of two paths that holds text: core and events.k8s.io spell the same fields differently. */
const either =
  (a: string, b: string): Reader =>
  (object) =>
    text(a)(object) || text(b)(object);

function eventFields(object: string, source: string): Record<string, Reader> {
  return {
    ...Object.fromEntries(
      OBJECT_FIELDS.map((field) => [`${object}.${field}`, either(`involvedObject.${field}`, `regarding.${field}`)]),
    ),
    reason: text('reason'),
    type: text('type'),
    [source]: (event) =>
      textAt(event, 'source', 'component') ||
      textAt(event, 'deprecatedSource', 'component') ||
      textAt(event, 'reportingComponent') ||
      textAt(event, 'reportingController'),
  };
}

const FIELDS: Readonly<Record<string, Readonly<Record<string, Reader>>>> = {
  pods: {
    ...texts('spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName'),
    ...texts('status.phase', 'status.podIP', 'status.nominatedNodeName'),
    'spec.hostNetwork': (pod) => String(isTrueAt(pod, 'spec', 'hostNetwork')),
    'status.podIPs': (pod) =>
      objectsAt(pod, 'status', 'podIPs')
        .map((entry) => textAt(entry, 'ip'))
        .join(','),
  },
  nodes: { 'spec.unschedulable': (node) => String(isTrueAt(node, 'spec', 'unschedulable')) },
  namespaces: { ...texts('status.phase'), name: text('metadata.name') },
  secrets: texts('type'),
  services: texts('spec.clusterIP', 'spec.type'),
  replicationcontrollers: { 'status.replicas': (object) => String(numberAt(object, 'status', 'replicas')) },
  'jobs.batch': { 'status.successful': (object) => String(numberAt(object, 'status', 'succeeded')) },
  'certificatesigningrequests.certificates.k8s.io': texts('spec.signerName'),
  'resourceslices.resource.k8s.io': texts('spec.nodeName', 'spec.driver'),
  events: {
    ...eventFields('involvedObject', 'source'),
    reportingComponent: either('reportingComponent', 'reportingController'),
  },
  'events.events.k8s.io': {
    ...eventFields('regarding', 'deprecatedSource'),
    reportingController: either('reportingController', 'reportingComponent'),
  },
};

/** Field label -> reader for one resource; the readers never fail, an absent field reads as ''. */
export function selectableFieldsOf(group: string, resource: string): Readonly<Record<string, Reader>> {
  return FIELDS[group === '' ? resource : `${resource}.${group}`] ?? {};
}
