/**
 * The CustomResourceDefinition of SSP: names, versions, fields and column of the one that ssp-operator publishes
 * (config/crd/bases, version 0.24). The parts that lead to other APIs are as deep as they are known here: a DataVolume is
 * kept as it is.
 */

import { establishedDefinition, rootSchema } from '@coracle/apimachinery/types/established-definition';
import type { Affinity, CustomResourceDefinition, Toleration } from '@coracle/apimachinery/types/types';
import {
  anyObject,
  atomicList,
  bool,
  builtin,
  int,
  list,
  long,
  needed,
  object,
  oneOf,
  str,
  stringMap,
  strings,
  time,
} from '../fields.ts';
import { toStructuralSchema } from '../structural-schema.ts';
import { SSP_GROUP } from './kinds.ts';

const CORE = 'io.k8s.api.core.v1';

const metadata = object('Metadata; the name is needed.', {
  annotations: stringMap('Annotations.'),
  finalizers: strings('Finalizers.'),
  labels: stringMap('Labels.'),
  name: str('Name.'),
  namespace: str('Namespace.'),
});

const dataImportCronTemplate = object('A DataImportCron of CDI.', {
  metadata,
  spec: needed(
    object('Which image is imported, and how often.', {
      garbageCollect: str('Whether old claims are removed: Outdated, the default, or Never.'),
      importsToKeep: int('How many claims are kept; 3 when absent.'),
      managedDataSource: needed(str('The DataSource that is kept up to date, of the same namespace.')),
      retentionPolicy: str('Whether what was imported stays when the cron goes.'),
      schedule: needed(str('When to look for a new image, in the format of cron.')),
      serviceAccountName: str('Account that makes the DataVolumes.', { minLength: 1 }),
      template: needed(anyObject('The DataVolume that is made.')),
    }),
  ),
});

const nullable = { nullable: true };
const tlsSecurityProfile = object('Settings for TLS.', {
  type: oneOf(['Old', 'Intermediate', 'Modern', 'Custom'], 'Which of the profiles.', { enforced: true }),
  old: object('The profile for old clients.', {}, nullable),
  intermediate: object('The profile that is recommended.', {}, nullable),
  modern: object('The profile for new clients only.', {}, nullable),
  custom: object(
    'A profile of your own.',
    {
      ciphers: atomicList(str('Cipher.'), 'Ciphers that are negotiated.'),
      minTLSVersion: oneOf(['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'], 'Lowest version.', {
        enforced: true,
      }),
    },
    nullable,
  ),
});

/** What both versions have. */
const shared = {
  commonTemplates: needed(
    object('Settings of the common templates.', {
      namespace: needed(str('Where templates are put.', { maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' })),
      dataImportCronTemplates: list(dataImportCronTemplate, 'DataImportCrons for the images of templates.'),
    }),
  ),
  templateValidator: object('Settings of the validator of templates.', {
    placement: object('Nodes that it may run on.', {
      affinity: builtin<Affinity>(`${CORE}.Affinity`, 'Affinity of its Pods.'),
      nodeSelector: stringMap('Labels that its nodes must have.'),
      tolerations: list(builtin<Toleration>(`${CORE}.Toleration`, 'A toleration.'), 'Tolerations of its Pods.'),
    }),
    replicas: int('How many of its Pods run.', { default: 2, minimum: 0 }),
  }),
  tlsSecurityProfile,
  tokenGenerationService: object('Settings of the service of tokens for VNC.', { enabled: bool('Runs the service.') }),
};

const spec = object('What is asked for.', {
  ...shared,
  cluster: object('Architectures of the nodes.', {
    controlPlaneArchitectures: strings('Those of the control plane.'),
    workloadArchitectures: strings('Those that guests run on.'),
  }),
  enableMultipleArchitectures: bool('Templates and images for several architectures.'),
});

const ignored = 'Has no effect.';
const olderSpec = object('What is asked for.', {
  ...shared,
  commonInstancetypes: object(ignored, { url: str(ignored) }),
  featureGates: object(ignored, {
    deployCommonInstancetypes: bool(ignored),
    deployTektonTaskResources: bool(ignored),
    deployVmConsoleProxy: bool(ignored),
  }),
  tektonPipelines: object(ignored, { namespace: str(ignored) }),
  tektonTasks: object(ignored, { namespace: str(ignored) }),
});

const status = object('What became of it.', {
  conditions: list(
    object('One condition.', {
      type: needed(str('Which condition.')),
      status: needed(str('True, False or Unknown.')),
      reason: str('Why, in one word.'),
      message: str('Why, for people.'),
      lastHeartbeatTime: time('When it was looked at last.'),
      lastTransitionTime: time('When its status changed.'),
    }),
    'Conditions.',
  ),
  observedGeneration: long('The generation that this status is about.'),
  observedVersion: str('The version that is deployed.'),
  operatorVersion: str('The version of what acts on this object.'),
  paused: bool('The annotation that pauses was seen.'),
  phase: str('Deploying, Deployed, Deleting or Deleted.'),
  targetVersion: str('The version that is wanted.'),
});

const version = (name: string, ofSpec: Parameters<typeof toStructuralSchema>[0]) => ({
  name,
  schema: rootSchema('Asks for what is added to KubeVirt, the protection of machines from deletion among it.', {
    spec: toStructuralSchema(ofSpec),
    status: toStructuralSchema(status),
  }),
  subresources: { status: {} },
  additionalPrinterColumns: [{ name: 'Phase', type: 'string', jsonPath: '.status.phase' }],
});

/** The definition, established. `now`, in milliseconds, is the time its conditions carry. */
export const sspCrd = (now: number): CustomResourceDefinition =>
  establishedDefinition(
    {
      group: SSP_GROUP,
      kind: 'SSP',
      storage: 'v1beta3',
      versions: [
        {
          ...version('v1beta2', olderSpec),
          deprecated: true,
          deprecationWarning:
            'SSP v1beta2 is deprecated and will not be updated with new functionality. It will stop being served in the next version.',
        },
        version('v1beta3', spec),
      ],
    },
    now,
  );
