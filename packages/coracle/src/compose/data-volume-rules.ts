/**
 * DataVolumes as they are taken, alone or in machines: what CDI's webhook finds, what nothing here does, and rights: to copy
 * what lies in another namespace, and to fetch from the host's own services.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { forbidden } from '@coracle/apimachinery/meta/status';
import { textAt } from '@coracle/apimachinery/types/read-value';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { Authorizer, UserInfo } from '@coracle/apiserver/auth/identity';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { causeDenial } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import {
  CDI_GROUP,
  CDI_VERSION,
  type DataImportCron,
  type DataSource,
  type DataVolumeSpec,
} from '@coracle/kubevirt/kinds/kinds';
import type { VirtualMachine } from '@coracle/kubevirt/kinds/kubevirt';
import { MAX_REFERENCES } from '@coracle/kubevirt/rules/data-volume/data-source-status';
import { sourceOfDataVolume } from '@coracle/kubevirt/rules/data-volume/data-volume-source';
import { validateImportCron } from '@coracle/kubevirt/rules/data-volume/import-cron';
import { isLoopbackUrl, validateDataVolume } from '@coracle/kubevirt/rules/data-volume/validate-data-volume';

export interface DataVolumeRulesOptions {
  readonly store: Pick<ObjectStore, 'get'>;
  readonly authorize: Authorizer;
  /** One of the components: what it writes was asked for by somebody who was asked. */
  readonly isTrusted: (user: UserInfo) => boolean;
  /** Of the guests. */
  readonly architecture: string;
}

type Spec = DeepReadonly<DataVolumeSpec>;

const WEBHOOK = 'datavolume-validate.cdi.kubevirt.io';
const CRON_WEBHOOK = 'dataimportcron-validate.cdi.kubevirt.io';
/** Fields of a spec that are stored and not followed, by resource. */
const NO_EFFECT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  dataimportcrons: { serviceAccountName: 'no Pods import images' },
  storageprofiles: {
    cloneStrategy: 'a copy shares with its source what it can',
    dataImportCronSourceFormat: 'images are imported into claims',
    snapshotClass: 'the VolumeSnapshotClass of the provisioner is taken',
  },
};
const DATA_SOURCES = `${CDI_GROUP}/datasources`;

/** Makes the plug-in. */
export function dataVolumeRules({
  store,
  authorize,
  isTrusted,
  architecture,
}: DataVolumeRulesOptions): AdmissionPlugin {
  /** Namespaces that content is taken from, other than `own`. */
  const foreign = (start: DeepReadonly<DataSource['spec']['source']>, own: string, from: string): string[] => {
    const found = new Set<string>();
    let namespace = from;
    let source: typeof start | undefined = start;
    for (let hop = 0; source && hop <= MAX_REFERENCES; hop++) {
      const { pvc, snapshot, dataSource }: typeof start = source;
      namespace = (pvc ?? snapshot ?? dataSource)?.namespace || namespace;
      if (namespace !== own) found.add(namespace);
      source = dataSource && sourceOf(dataSource.name, namespace);
    }
    return [...found];
  };
  const sourceOf = (name: string, namespace: string) =>
    (store.get({ prefix: DATA_SOURCES, namespace, name })?.object as unknown as DeepReadonly<DataSource> | undefined)
      ?.spec?.source;

  const checkCopies = async (attributes: AdmissionAttributes, namespaces: readonly string[]): Promise<void> => {
    for (const namespace of namespaces) {
      const asked = {
        verb: 'create',
        group: CDI_GROUP,
        version: CDI_VERSION,
        resource: 'datavolumes',
        subresource: 'source',
      };
      const { allowed } = await authorize(attributes.user, { type: 'resource', ...asked, namespace, name: '' });
      if (!allowed)
        throw forbidden(
          attributes.info,
          nameOf(attributes),
          `User ${attributes.user.username} has insufficient permissions in clone source namespace ${namespace}: it takes the right to create datavolumes/source there`,
        );
    }
  };
  const checkSpec = async (attributes: AdmissionAttributes, spec: Spec): Promise<void> => {
    const { user, namespace, info } = attributes;
    if (isTrusted(user)) return;
    const source = sourceOfDataVolume(spec, namespace);
    if (source?.type === 'pvc' || source?.type === 'snapshot' || source?.type === 'dataSource')
      await checkCopies(attributes, foreign({ [source.type]: source }, namespace, namespace));
    if (source?.type !== 'http' || !isLoopbackUrl(source.http.url)) return;
    const proxy = { verb: 'get', group: '', version: 'v1', resource: 'nodes', subresource: 'proxy' };
    const { allowed } = await authorize(user, { type: 'resource', ...proxy, namespace: '', name: '' });
    if (!allowed)
      throw forbidden(
        info,
        nameOf(attributes),
        'the URL leads to the own services of the host that fetches it, which takes the right to get nodes/proxy; serve the image under another address',
      );
  };
  const checkDataVolume = async (attributes: AdmissionAttributes): Promise<void> => {
    const spec = (attributes.object as unknown as { spec?: Spec }).spec ?? ({} as Spec);
    const before = attributes.oldObject && (attributes.oldObject as unknown as { spec?: Spec }).spec;
    if (attributes.oldObject) {
      if (deepEqual(before, spec)) return;
      throw causeDenial(WEBHOOK, [
        { type: 'FieldValueForbidden', field: 'spec', detail: 'Cannot update DataVolume Spec' },
      ]);
    }
    const { causes, warnings } = validateDataVolume('spec', spec, architecture);
    for (const warning of warnings) attributes.warn(warning);
    if (causes.length > 0) throw causeDenial(WEBHOOK, causes);
    await checkSpec(attributes, spec);
  };
  const checkCron = async ({ object, oldObject, warn }: AdmissionAttributes): Promise<void> => {
    const specOf = (cron: unknown) => (cron as DeepReadonly<DataImportCron> | undefined)?.spec;
    const spec = specOf(object);
    if (!spec || deepEqual(spec, specOf(oldObject))) return;
    if (oldObject)
      throw causeDenial(CRON_WEBHOOK, [
        { type: 'FieldValueForbidden', field: 'spec', detail: 'Cannot update DataImportCron Spec' },
      ]);
    const { causes, warnings } = validateDataVolume('spec.template.spec', spec.template.spec, architecture);
    for (const warning of warnings) warn(warning);
    const all = [...causes, ...validateImportCron(spec)];
    if (all.length > 0) throw causeDenial(CRON_WEBHOOK, all);
  };
  const checkMachine = async (attributes: AdmissionAttributes): Promise<void> => {
    const templatesOf = (vm: unknown) => (vm as VirtualMachine | undefined)?.spec?.dataVolumeTemplates ?? [];
    const before = templatesOf(attributes.oldObject);
    for (const [at, template] of templatesOf(attributes.object).entries()) {
      if (before.some((known) => deepEqual(known, template))) continue;
      const { causes, warnings } = validateDataVolume(
        `spec.dataVolumeTemplates[${at}].spec`,
        template.spec,
        architecture,
      );
      for (const warning of warnings) attributes.warn(warning);
      if (causes.length > 0) throw causeDenial(WEBHOOK, causes);
      await checkSpec(attributes, template.spec);
    }
  };

  return {
    name: 'DataVolumeRules',
    matches: (operation, { group, resource }, subresource) =>
      (operation === 'CREATE' || operation === 'UPDATE') &&
      subresource === '' &&
      ((group === CDI_GROUP && ['datavolumes', 'datasources', ...Object.keys(NO_EFFECT)].includes(resource)) ||
        (group === 'kubevirt.io' && resource === 'virtualmachines')),
    async validate(attributes) {
      const { info, object, namespace, user } = attributes;
      // What is being deleted must be let go whatever it says.
      if (!object || isDeleting(object)) return;
      warnOfNoEffect(attributes);
      if (info.resource === 'virtualmachines') return checkMachine(attributes);
      if (info.resource === 'datavolumes') return checkDataVolume(attributes);
      if (info.resource === 'dataimportcrons') return checkCron(attributes);
      if (info.resource !== 'datasources' || isTrusted(user)) return;
      // Whoever points a name at the content of another namespace gives it to all that may use the name.
      const source = (object as unknown as { spec?: DataSource['spec'] }).spec?.source;
      if (source) await checkCopies(attributes, foreign(source, namespace, namespace));
    },
  };
}

function warnOfNoEffect({ info, object, warn }: AdmissionAttributes): void {
  for (const [field, why] of Object.entries(NO_EFFECT[info.resource] ?? {}))
    if (textAt(object, 'spec', field) !== '') warn(`spec.${field} has no effect here: ${why}`);
}

const nameOf = ({ name, object }: AdmissionAttributes): string =>
  name || (object?.metadata.name ?? object?.metadata.generateName ?? '');
