/** The virtual machine as a restore writes it (kubevirt pkg/storage/snapshot/restore, generateRestoredVMSpec). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { withoutManagement } from '@coracle/apimachinery/meta/management';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { applyJsonPatch } from '@coracle/apimachinery/patch/json-patch';
import type {
  ReadonlyRestore,
  ReadonlyVm,
  SourceVirtualMachine,
  VirtualMachine,
  Volume,
  VolumeRestore,
} from '../../kinds/kubevirt.ts';
import { decideIdentity, IDENTITY_ORIGIN, withIdentity } from '../identity/decide-identity.ts';
import { RESUME_FALLBACK, RESUME_FROM } from '../memory-state/resume-request.ts';
import { effectiveRunStrategy } from '../run-strategy/run-strategy.ts';
import { marked } from './restored-claim.ts';
import { CAPTURED_FIELDS, type CapturedField } from './saved-machine.ts';
import { volumesOf } from './saved-volumes.ts';

type Saved = DeepReadonly<SourceVirtualMachine>;
type Template = NonNullable<VirtualMachine['spec']['dataVolumeTemplates']>[number];

const nameOfTemplate = ({ metadata }: DeepReadonly<Template>): string | undefined =>
  (metadata as { readonly name?: string } | null | undefined)?.name;

/** Whether a machine has a template for a DataVolume. */
export const hasTemplate = (saved: Saved, dataVolume: string): boolean =>
  (saved.spec?.dataVolumeTemplates ?? []).some((each) => nameOfTemplate(each) === dataVolume);

export interface RestoredMachine {
  readonly restore: ReadonlyRestore;
  readonly saved: Saved;
  /** The machine that is there; undefined to make a new one. */
  readonly target: ReadonlyVm | undefined;
  readonly restores: readonly DeepReadonly<VolumeRestore>[];
  /** What the matchers are to name; none where the status names the copies. */
  readonly revisions: Partial<Record<CapturedField, string>>;
  /** Annotations by which its next start resumes the guest; none where its memory was not saved. */
  readonly resume?: Readonly<Record<string, string>>;
}

/**
 * The machine to write. One that is there keeps its metadata and its run strategy, a new one is halted and takes the
 * patches. The identity is that of the machine the snapshot was taken from where it has its name, else a new one
 * (`kubevirt/rules/identity`): admission fills in what is left empty here.
 * @throws Error when a patch does not fit
 */
export function restoredMachine(of: RestoredMachine): VirtualMachine {
  const { restore, saved, target, revisions } = of;
  const spec = cloneJson<VirtualMachine['spec']>(saved.spec as DeepReadonly<VirtualMachine['spec']>);
  replaceVolumes(spec, of);
  for (const field of CAPTURED_FIELDS) {
    const matcher = spec[field];
    if (matcher == null) continue;
    const { revisionName: _, ...rest } = matcher;
    const revision = revisions[field];
    spec[field] = { ...rest, ...(revision !== undefined && { revisionName: revision }) };
  }
  setRunStrategy(spec, target);
  // Made anew it is no sync's: one that took the machine out would take it out again.
  const source = target?.metadata ?? withoutManagement(saved.metadata ?? {});
  const { [IDENTITY_ORIGIN]: _, [RESUME_FROM]: __, [RESUME_FALLBACK]: ___, ...annotations } = source.annotations ?? {};
  const name = restore.spec.target.name;
  const domain = spec.template.spec?.domain;
  let origin: string | undefined;
  if (domain !== undefined) {
    const vmName = saved.metadata?.name ?? '';
    const identity =
      vmName === name
        ? decideIdentity({ type: 'restore-same', firmware: domain.firmware, vmName })
        : { uuid: '', serial: '' };
    domain.firmware = withIdentity(domain.firmware, identity);
    origin = 'origin' in identity ? identity.origin : undefined;
  }
  const written: VirtualMachine = {
    ...(target as VirtualMachine | undefined),
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      ...((target?.metadata ?? {
        name,
        namespace: restore.metadata.namespace ?? '',
        ...(saved.metadata?.labels && { labels: withoutManagement(saved.metadata).labels }),
      }) as VirtualMachine['metadata']),
      annotations: marked(
        { ...annotations, ...(origin !== undefined && { [IDENTITY_ORIGIN]: origin }), ...of.resume },
        restore,
      ),
    },
    spec,
  };
  return target === undefined ? patched(written, restore) : written;
}

/** What the volumes refer to now; memory dumps are not restored. */
function replaceVolumes(spec: VirtualMachine['spec'], { saved, restores }: RestoredMachine): void {
  const volumes = volumesOf({ spec }).flatMap((volume): Volume[] => {
    if (volume.memoryDump) return [];
    const next = cloneJson<Volume>(volume);
    const restore = restores.find(({ volumeName }) => volumeName === volume.name);
    if (restore === undefined) return [next];
    if (next.persistentVolumeClaim) next.persistentVolumeClaim.claimName = restore.persistentVolumeClaim;
    if (!next.dataVolume) return [next];
    if (!hasTemplate(saved, next.dataVolume.name))
      return [{ name: next.name, persistentVolumeClaim: { claimName: restore.persistentVolumeClaim } }];
    const template = spec.dataVolumeTemplates?.find((each) => nameOfTemplate(each) === next.dataVolume?.name);
    const name = restore.dataVolumeName ?? restore.persistentVolumeClaim;
    if (template !== undefined) template.metadata = { ...template.metadata, name };
    next.dataVolume.name = name;
    return [next];
  });
  if (spec.template.spec === undefined) return;
  if (volumes.length > 0) spec.template.spec.volumes = volumes;
  else delete spec.template.spec.volumes;
}

function setRunStrategy(spec: VirtualMachine['spec'], target: ReadonlyVm | undefined): void {
  const usesRunning = (target?.spec ?? spec).running != null;
  if (usesRunning) {
    spec.running = false;
    delete spec.runStrategy;
    return;
  }
  delete spec.running;
  spec.runStrategy =
    target === undefined ? 'Halted' : (effectiveRunStrategy(target.spec) as NonNullable<typeof spec.runStrategy>);
}

function patched(vm: VirtualMachine, { spec }: ReadonlyRestore): VirtualMachine {
  const patches = spec.patches ?? [];
  if (patches.length === 0) return vm;
  try {
    return applyJsonPatch(
      vm,
      patches.map((patch) => JSON.parse(patch) as unknown),
    ) as VirtualMachine;
  } catch (error) {
    throw new Error(`error patching VM ${vm.metadata.name}: ${(error as Error).message}`);
  }
}

/** DataVolumes of templates that the machine has no more. */
export function replacedDataVolumes(before: ReadonlyVm, after: ReadonlyVm): string[] {
  const names = (vm: ReadonlyVm): string[] =>
    (vm.spec.dataVolumeTemplates ?? []).flatMap((each) => nameOfTemplate(each) ?? []);
  const kept = new Set(names(after));
  return names(before).filter((name) => !kept.has(name));
}
