/** Rules about the DataVolumes that a virtual machine brings along (kubevirt pkg/storage/admitters). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachine } from '../../../kinds/kubevirt.ts';
import { type Cause, countPresent, invalidValue, requiredValue, validateEach } from './causes.ts';

type Template = NonNullable<VirtualMachine['spec']['dataVolumeTemplates']>[number];

/** The first finding of each template. The field is singular, as upstream names it. */
export function validateDataVolumeTemplates({ dataVolumeTemplates, template }: VirtualMachine['spec']): Cause[] {
  const causes: Cause[] = [];
  const used = new Set<string | undefined>();
  for (const { dataVolume, persistentVolumeClaim } of template.spec?.volumes ?? []) {
    used.add(dataVolume?.name).add(persistentVolumeClaim?.claimName);
  }
  validateEach(causes, dataVolumeTemplates ?? [], (dataVolume, i) => {
    const field = `spec.dataVolumeTemplate[${i}]`;
    const cause = validateTemplate(field, dataVolume);
    if (cause !== undefined) return [cause];
    const referenced = used.has(dataVolume.metadata?.name ?? '');
    const text = `DataVolumeTemplate entry ${field} must be referenced in the VMI template's 'volumes' list`;
    return referenced ? [] : [requiredValue(field, text)];
  });
  return causes;
}

function validateTemplate(field: string, { metadata, spec }: Template): Cause | undefined {
  if (!metadata?.name) {
    const at = `${field}.name`;
    return requiredValue(at, `'name' field must not be empty for DataVolumeTemplate entry ${at}.`);
  }
  const { pvc, storage, source, sourceRef } = spec;
  const claims = countPresent([pvc, storage]);
  if (claims === 0) return invalidValue(`${field}.PVC.Storage`, 'Missing Data volume PVC or Storage');
  if (claims > 1) {
    const text = 'Duplicate storage definition, both target storage and target pvc defined';
    return invalidValue(`${field}.PVC.Storage`, text);
  }
  const claim = pvc ?? storage;
  const populated = countPresent([claim?.dataSource, claim?.dataSourceRef]) > 0;
  const sourced = countPresent([source, sourceRef]) > 0;
  if (populated && sourced) {
    return invalidValue(`${field}.source`, 'External population is incompatible with Source and SourceRef');
  }
  if (!populated && !sourced) {
    const text = 'Data volume should have either Source, SourceRef, or be externally populated';
    return invalidValue(`${field}.source.sourceRef`, text);
  }
  if (source === undefined || source === null) return undefined;
  const sources = countPresent(Object.values(source));
  if (sources === 1) return undefined;
  const text = sources === 0 ? 'Missing dataVolume valid source' : 'Multiple dataVolume sources';
  return invalidValue(`${field}.source`, text);
}

type Vm = DeepReadonly<VirtualMachine>;

/** Templates make their DataVolumes in the namespace of the machine. Asked only about templates that changed. */
export function validateTemplateNamespaces({ metadata, spec }: Vm, old: Vm | undefined): Cause[] {
  const causes: Cause[] = [];
  const templates = spec.dataVolumeTemplates ?? [];
  if (old !== undefined && deepEqual(templates, old.spec.dataVolumeTemplates ?? [])) return [];
  validateEach(causes, templates, (template, i) => {
    const namespace = template.metadata?.['namespace'];
    if (!namespace || !metadata.namespace || namespace === metadata.namespace) return [];
    const text = `Embedded DataVolume namespace ${namespace} differs from VM namespace ${metadata.namespace}`;
    return [invalidValue(`spec.dataVolumeTemplates[${i}]`, text)];
  });
  return causes;
}
