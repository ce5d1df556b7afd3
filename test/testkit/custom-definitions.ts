/** CustomResourceDefinitions for tests, and the wait until one is served. */
import type { InProcessServer } from './in-process-server.ts';

export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export interface DefinitionOptions {
  /** Singular, lower case; the kind begins with a capital. */
  readonly name: string;
  readonly group?: string;
  readonly scope?: 'Namespaced' | 'Cluster';
  /** The schema of spec; `{}` gives an open one. */
  readonly spec?: object;
  /** Further keywords of the root schema. */
  readonly root?: object;
  /** Further fields of the one version. */
  readonly version?: object;
  /** Instead of the one version. */
  readonly versions?: readonly object[];
  readonly conversion?: object;
  readonly names?: object;
}

/** A definition of `<name>s.<group>`, with one version v1 unless set otherwise. */
export function definition(options: DefinitionOptions) {
  const { name, group = 'example.com', scope = 'Namespaced' } = options;
  const spec = options.spec ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${name}s.${group}` },
    spec: {
      group,
      scope,
      names: { plural: `${name}s`, kind: `${name[0]!.toUpperCase()}${name.slice(1)}`, ...options.names },
      ...(options.conversion && { conversion: options.conversion }),
      versions: options.versions ?? [version('v1', { spec, ...options.root }, { storage: true, ...options.version })],
    },
  };
}

/** One version; `spec` and `status` go to properties of the schema, the rest of `schema` beside them. */
export function version(
  name: string,
  { spec, status, ...root }: { readonly spec?: object; readonly status?: object; readonly [keyword: string]: unknown },
  more: object = {},
) {
  const properties = { ...(spec && { spec }), ...(status && { status }) };
  return {
    name,
    served: true,
    storage: false,
    ...more,
    schema: { openAPIV3Schema: { type: 'object', properties, ...root } },
  };
}

/** Creates the definition and waits until it is established. */
export async function establish(server: InProcessServer, crd: ReturnType<typeof definition>): Promise<void> {
  const answer = await server.request('POST', DEFINITIONS, { body: crd });
  if (answer.status !== 201) throw new Error(`definition refused: ${answer.status} ${answer.text}`);
  await settled(server, crd.metadata.name);
}

/** Waits until the controller has seen the newest spec of a definition; returns the definition. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
export async function settled(server: InProcessServer, name: string): Promise<any> {
  const watch = await server.watch(`${DEFINITIONS}?watch=true&fieldSelector=metadata.name=${name}`);
  try {
    for (;;) {
      const event = await watch.next();
      if (event === undefined) throw new Error(`the watch on ${name} has ended`);
      const { metadata, status } = event.object;
      if (status?.observedGeneration === metadata.generation) return event.object;
    }
  } finally {
    watch.close();
  }
}
