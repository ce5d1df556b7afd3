/** How the bombs are written down: bodies, and the few objects that most of them are. */

export interface Body {
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where it is sent; a config map where absent. */
  readonly target?: string;
  /** POST or PATCH where absent, as the type says. */
  readonly method?: 'GET';
  /** Sent before each try, without an eye on the event loop: so that no answer is one that was kept. */
  readonly first?: () => Body;
}

export const utf8 = new TextEncoder();
export const json = (name: string, text: string, type = 'application/json'): Body => ({
  name,
  type,
  bytes: utf8.encode(text),
});
export const map = (data: string): string =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"data":${data}}`;
export const repeated = (count: number, part: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => part(at)).join(',');

export const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
export const CUSTOM = '/apis/fuzz.example/v1/namespaces/default/bombs';
export const STRATEGIC = 'application/strategic-merge-patch+json';
export const MERGE = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const APPLY = 'application/apply-patch+yaml';
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const dry = (path: string): string => `${path}?fieldManager=fuzz&dryRun=All`;

/** A Deployment whose pods have these containers. */
export const deployment = (containers: string, more = ''): string =>
  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"bomb"},"spec":{"selector":{"matchLabels":{"a":"b"}${more}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[${containers}]}}}}`;
export const custom = (spec: string): string =>
  `{"apiVersion":"fuzz.example/v1","kind":"Bomb","metadata":{"name":"bomb"},"spec":{${spec}}}`;

/** A body for a route of its own, which is only tried. */
export const at = (name: string, target: string, text: string): Body => ({ ...json(name, text), target: dry(target) });
export const pod = (spec: string): string =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bomb"},"spec":{${spec}}}`;
