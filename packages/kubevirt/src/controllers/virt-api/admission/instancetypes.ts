/**
 * Instance types and preferences at the door (kubevirt pkg/instancetype/webhooks/vm): matchers are checked and inferred
 * from volumes, what a preference decides for good is written into the machine, and the machine is validated as it would
 * start. What cannot be found is never a reason to refuse: the controller will say that it is missing.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, VirtualMachine } from '../../../kinds/kubevirt.ts';
import { keepPreferenceInVirtualMachine } from '../../../rules/instancetype/expand.ts';
import { type ExpandedTemplate, expandTemplate } from '../../../rules/instancetype/expand-template.ts';
import { INFERENCE_RESOURCES, inferMatcher } from '../../../rules/instancetype/infer.ts';
import { type MatcherField, validateMatchers } from '../../../rules/instancetype/matcher.ts';
import {
  hasMatcher,
  layersOf,
  type Resolved,
  type ResolvedSources,
  readSource,
  readSources,
  type SourceReader,
} from '../../../rules/instancetype/resolve.ts';
import { buildRevision } from '../../../rules/instancetype/revision.ts';
import { sourceReader } from '../source-reader.ts';
import type { AdmissionContext } from './admission-context.ts';
import { CauseRefusal, WebhookRefusal } from './causes.ts';
import type { Subject } from './webhook.ts';

/**
 * The mutator's part: changes `vm`.
 * @throws CauseRefusal for a matcher that is not well-formed, WebhookRefusal 400 when nothing can be inferred, 403 when
 * who asks may not read what it is inferred from
 */
export async function mutateMatchers(vm: VirtualMachine, old: ReadonlyVm | undefined, reader: Reader): Promise<void> {
  const causes = validateMatchers(vm, old);
  if (causes.length > 0) throw new CauseRefusal(causes);
  for (const field of ['instancetype', 'preference'] as const) await infer(vm, field, reader);
  const found = await readSource(vm, 'preference', forgiving(sourceReader(reader.client)));
  const { preference } = layersOf({ instancetype: NOTHING, preference: found });
  if (preference !== undefined) keepPreferenceInVirtualMachine(vm, preference);
}

const NOTHING: Resolved = { type: 'none' };

/** Who asks must be able to get what is inferred from: it shows its labels. */
type Reader = Pick<Subject, 'client' | 'mayRead'>;

async function infer(vm: VirtualMachine, field: MatcherField, { client, mayRead }: Reader): Promise<void> {
  const error = await inferMatcher(vm, field, async (ref) => {
    const { resource, namespace, name } = ref;
    const { group } = INFERENCE_RESOURCES[resource];
    if (!(await mayRead({ ...ref, group }))) {
      throw new WebhookRefusal(
        403,
        `spec.${field}.inferFromVolume needs the right to get ${resource}${group && `.${group}`} ${JSON.stringify(name)} in namespace ${JSON.stringify(namespace)}`,
      );
    }
    const type: ResourceType<KubeObject> = { ...INFERENCE_RESOURCES[resource], resource, namespaced: true };
    return orAbsent(client.get(type, ref)).catch((failure: unknown) => {
      throw new WebhookRefusal(400, failure instanceof Error ? failure.message : String(failure));
    });
  });
  if (error !== undefined) throw new WebhookRefusal(400, error);
}

export interface ExpandedMachine {
  readonly template: ExpandedTemplate;
  /** The copies that keep what was validated, for a machine that is being created. */
  readonly captures: readonly ControllerRevision[];
}

/**
 * The validator's part: the template as it would start, or why it cannot. Undefined without matchers.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export async function expandMachine(
  vm: ReadonlyVm,
  context: AdmissionContext,
  client: Client,
): Promise<ExpandedMachine | undefined> {
  if (!hasMatcher(vm)) return undefined;
  const { own, ...reader } = forgiving(sourceReader(client));
  // A machine that is being created owns nothing yet.
  const found = await readSources(vm, context.operation === 'CREATE' ? reader : { ...reader, own });
  const { spec = {}, metadata } = vm.spec.template ?? {};
  const template = expandTemplate({
    ...layersOf(found),
    spec,
    ...(metadata && { metadata }),
    config: context.config,
    instancetypeMissing: found.instancetype.type === 'missing',
  });
  return { template, captures: template.ok ? capturesOf(vm, found, context) : [] };
}

/** A machine that is being created owns its copies from the first moment, so that nothing can vanish under it. */
function capturesOf(
  vm: ReadonlyVm,
  found: ResolvedSources,
  { operation, config }: AdmissionContext,
): ControllerRevision[] {
  if (operation !== 'CREATE' || vm.metadata.uid === undefined || config.instancetypeReferencePolicy !== 'reference')
    return [];
  return [found.instancetype, found.preference].flatMap((resolved) =>
    resolved.type === 'object' ? [buildRevision(vm, resolved.object)] : [],
  );
}

/** What cannot be read counts as missing: that must not keep anyone from changing a machine. */
const forgiving = (reader: Required<SourceReader>): Required<SourceReader> => ({
  revision: (...call) => reader.revision(...call).catch(() => undefined),
  object: (...call) => reader.object(...call).catch(() => undefined),
  own: (...call) => reader.own(...call).catch(() => []),
});
