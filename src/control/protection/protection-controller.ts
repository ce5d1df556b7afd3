/**
 * Keeps the policy that refuses the deletion of protected virtual machines, and its binding, as ssp-operator writes them:
 * made at start, put back when somebody edits or deletes them.
 *
 * Guarantees: the whole spec is written whenever the generation is not the one that our own last write gave, so that
 * nothing can be added to it either; labels and annotations of users stay. An object that is being deleted is waited for.
 */
import {
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
} from '../../api/kinds/builtin/admission-policies.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly, KubeObject, ObjectKey, ObjectMeta } from '../../api/meta/object.ts';
import { createController, DONE, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import type { Informer } from '../../client/informer/informer.ts';
import {
  DELETION_POLICY,
  DELETION_POLICY_BINDING,
  DELETION_POLICY_NAME,
} from '../../domain/protection/deletion-policy.ts';
import { type OperandOwner, operandMetadata } from '../../domain/protection/operand-metadata.ts';

const apiGroups = ['admissionregistration.k8s.io'];
const resources = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];

/** Rights the controller needs, and no others: it changes no policy but its own. */
export const protectionControllerRules = [
  { apiGroups, resources, verbs: ['list', 'watch', 'create'] },
  { apiGroups, resources, resourceNames: [DELETION_POLICY_NAME], verbs: ['update'] },
];

const OPERAND = { name: 'vm-delete-protection', component: 'vmDeleteProtection' };
/** Policy and binding are one matter. */
const KEY: ObjectKey = { namespace: '', name: DELETION_POLICY_NAME };

interface WithSpec extends KubeObject {
  spec: unknown;
}

/** One of the two: as it should be, as it is, and what our last write of its spec was. */
interface Kept {
  readonly type: ResourceType<WithSpec>;
  readonly wanted: WithSpec;
  readonly informer: Informer<WithSpec>;
  written?: { readonly uid: string; readonly generation: number };
}

/** Makes the controller; nothing happens before `start`. */
export function createProtectionController({ client, informers, clock, log }: ControllerEnvironment): Runnable {
  const kept = (
    [
      [VALIDATING_ADMISSION_POLICIES, DELETION_POLICY],
      [VALIDATING_ADMISSION_POLICY_BINDINGS, DELETION_POLICY_BINDING],
    ] as readonly (readonly [ResourceType<WithSpec>, WithSpec])[]
  ).map(
    ([type, wanted]): Kept => ({
      type,
      wanted,
      informer: informers.of(type, { fieldSelector: `metadata.name=${DELETION_POLICY_NAME}` }),
    }),
  );

  const controller = createController({
    name: 'protection',
    client,
    clock,
    log,
    sources: kept.map(({ informer }) => source(informer, () => [KEY])),
    reconcile: async (key, { signal }) => {
      for (const one of kept) await keep(one, { key, owner: undefined, signal });
      return DONE;
    },
  });
  return {
    name: controller.name,
    start(signal) {
      // Of objects that are not there no source speaks.
      controller.enqueue(KEY);
      return controller.start(signal);
    },
  };

  async function keep(
    one: Kept,
    { key, owner, signal }: { readonly key: ObjectKey; readonly owner: OperandOwner; readonly signal: AbortSignal },
  ): Promise<void> {
    const { type, wanted, informer } = one;
    const found = informer.get(key);
    if (!found) {
      const metadata = operandMetadata(wanted.metadata, OPERAND, owner) as ObjectMeta;
      note(one, await client.create(type, { ...wanted, metadata }, { signal }));
      log.info('deletion policy written', { kind: type.kind, name: key.name });
      return;
    }
    // Made anew when it is gone, which is a change as well.
    if (found.metadata.deletionTimestamp !== undefined) return;
    const metadata = operandMetadata(found.metadata, OPERAND, owner) as ObjectMeta;
    const hasOurSpec = isOurs(one, found);
    if (hasOurSpec && metadata === found.metadata) return;
    const spec = hasOurSpec ? found.spec : wanted.spec;
    note(one, await client.update(type, { ...(found as WithSpec), metadata, spec }, { signal }));
  }

  function note(one: Kept, { metadata: { uid = '', generation = 0 } }: KubeObject): void {
    one.written = { uid, generation };
  }
}

/** Whether the spec is what we wrote last: it is, or the informer has yet to see that write. */
const isOurs = ({ written }: Kept, { metadata }: DeepReadonly<KubeObject>): boolean =>
  written !== undefined && metadata.uid === written.uid && (metadata.generation ?? 0) <= written.generation;
