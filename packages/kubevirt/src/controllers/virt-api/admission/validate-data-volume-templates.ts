/** Rules about the DataVolumes that a virtual machine brings along (kubevirt pkg/storage/admitters). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ReadonlyVm, VirtualMachine } from '../../../kinds/kubevirt.ts';
import { countPresent, type Findings } from './causes.ts';

type Template = NonNullable<VirtualMachine['spec']['dataVolumeTemplates']>[number];

/** The first finding of each template. The field is singular, as upstream names it. */
export function validateDataVolumeTemplates(
  found: Findings,
  { dataVolumeTemplates, template }: VirtualMachine['spec'],
): void {
  const used = new Set<string | undefined>();
  for (const { dataVolume, persistentVolumeClaim } of template.spec?.volumes ?? [])
    used.add(dataVolume?.name).add(persistentVolumeClaim?.claimName);
  found.each('spec.dataVolumeTemplate', dataVolumeTemplates, (at, dataVolume) => {
    const before = found.causes.length;
    validateTemplate(at, dataVolume);
    if (found.causes.length > before || used.has(dataVolume.metadata?.name ?? '')) return;
    const text = "must be referenced in the VMI template's 'volumes' list";
    at.required('', `DataVolumeTemplate entry ${at.path} ${text}`);
  });
}

function validateTemplate(found: Findings, { metadata, spec }: Template): void {
  if (!metadata?.name) {
    const text = "'name' field must not be empty for DataVolumeTemplate entry";
    found.required('.name', `${text} ${found.path}.name.`);
    return;
  }
  const { pvc, storage, source, sourceRef } = spec;
  const claim = pvc ?? storage;
  const claims = countPresent([pvc, storage]);
  const populated = countPresent([claim?.dataSource, claim?.dataSourceRef]) > 0;
  const sourced = countPresent([source, sourceRef]) > 0;
  const sources = countPresent(Object.values(source ?? {}));
  if (claims === 0) found.invalid('.PVC.Storage', 'Missing Data volume PVC or Storage');
  else if (claims > 1)
    found.invalid('.PVC.Storage', 'Duplicate storage definition, both target storage and target pvc defined');
  else if (populated && sourced)
    found.invalid('.source', 'External population is incompatible with Source and SourceRef');
  else if (!populated && !sourced) {
    const text = 'Data volume should have either Source, SourceRef, or be externally populated';
    found.invalid('.source.sourceRef', text);
  } else if (source && sources !== 1)
    found.invalid('.source', sources === 0 ? 'Missing dataVolume valid source' : 'Multiple dataVolume sources');
}

/** Templates make their DataVolumes in the namespace of the machine. Asked only about templates that changed. */
export function validateTemplateNamespaces(
  found: Findings,
  { metadata, spec }: ReadonlyVm,
  old: ReadonlyVm | undefined,
): void {
  const templates = spec.dataVolumeTemplates ?? [];
  if (old !== undefined && deepEqual(templates, old.spec.dataVolumeTemplates ?? [])) return;
  found.each('spec.dataVolumeTemplates', templates, (at, template) => {
    const namespace = template.metadata?.['namespace'];
    if (!namespace || !metadata.namespace || namespace === metadata.namespace) return;
    const text = `Embedded DataVolume namespace ${namespace} differs from VM namespace ${metadata.namespace}`;
    at.invalid('', text);
  });
}
