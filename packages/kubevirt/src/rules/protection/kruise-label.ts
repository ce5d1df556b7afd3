/**
 * OpenKruise's label against deletion, and whose deletions it refuses. Rule: `pkg/webhook/util/deletionprotection` of
 * openkruise/kruise and the webhooks that ask it, with both feature gates on (`ResourcesDeletionProtection`,
 * `DeletionProtectionForCRDCascadingGate`).
 */

/** A label of the kinds that `kruiseHookOf` knows. */
export const KRUISE_PROTECTION_LABEL = 'policy.kruise.io/delete-protection';

/** What OpenKruise checks before `Cascading` refuses. `none`: the value has no effect. */
export type KruiseCascade = 'namespace' | 'definition' | 'replicas' | 'none';

/** The webhook by which OpenKruise guards a kind. */
export interface KruiseHook {
  /** Named in every refusal. */
  readonly name: string;
  readonly cascade: KruiseCascade;
}

const WORKLOADS = ['deployment', 'replicaset', 'statefulset'] as const;

const HOOKS: ReadonlyMap<string, KruiseHook> = new Map<string, KruiseHook>([
  ['/namespaces', { name: 'vnamespace.kb.io', cascade: 'namespace' }],
  [
    'apiextensions.k8s.io/customresourcedefinitions',
    { name: 'vcustomresourcedefinition.kb.io', cascade: 'definition' },
  ],
  ...WORKLOADS.map((kind): [string, KruiseHook] => [
    `apps/${kind}s`,
    { name: `vbuiltin${kind}.kb.io`, cascade: 'replicas' },
  ]),
  ['/services', { name: 'vservice.kb.io', cascade: 'none' }],
  ['networking.k8s.io/ingresses', { name: 'vingress.kb.io', cascade: 'none' }],
]);

/** The webhook of a resource (plural); undefined where the label means nothing. */
export const kruiseHookOf = (group: string, resource: string): KruiseHook | undefined =>
  HOOKS.get(`${group}/${resource}`);
