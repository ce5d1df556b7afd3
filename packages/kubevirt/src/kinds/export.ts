/** VirtualMachineExport: disks offered for download (export.kubevirt.io). */
import type { Static } from 'typebox';
import { atomicList, duration, keyedList, needed, object, oneOf, str, time } from './fields.ts';
import { typedLocalReference } from './snapshot.ts';
import { condition } from './status.ts';

export const EXPORT_PHASES = ['Pending', 'Ready', 'Terminated', 'Skipped'] as const;
export const EXPORT_FORMATS = ['raw', 'gzip', 'dir', 'tar.gz'] as const;
export const EXPORT_MANIFESTS = ['all', 'auth-header-secret'] as const;

export const exportSpec = object('What is offered, and how long.', {
  source: needed(
    typedLocalReference('A PersistentVolumeClaim, a VirtualMachineSnapshot, or a VirtualMachine that does not run.'),
  ),
  tokenSecretRef: str('Secret with the token of those who download; one is made when absent.'),
  ttlDuration: duration('How long the export lives; 2h when absent.'),
});

const exportLink = object('Where the disks are.', {
  cert: needed(str('PEM of the authority of the server.')),
  volumes: keyedList(
    object('One volume.', {
      name: needed(str('Name of the claim.')),
      formats: keyedList(
        object('One form of it.', {
          format: needed(oneOf(EXPORT_FORMATS, 'Form of the content.')),
          url: needed(str('Where it is.')),
        }),
        ['format'],
        'Forms that it can be had in.',
      ),
    }),
    ['name'],
    'Volumes that can be downloaded.',
  ),
  manifests: keyedList(
    object('One set of manifests.', {
      type: needed(oneOf(EXPORT_MANIFESTS, 'What it holds.')),
      url: needed(str('Where it is.')),
    }),
    ['type'],
    'Manifests that make the machine anew.',
  ),
});

export const exportStatus = object('What is known of the export.', {
  phase: oneOf(EXPORT_PHASES, 'Where it is.'),
  links: object('Where the content can be had.', { internal: exportLink, external: exportLink }),
  tokenSecretRef: str('Secret with the token.'),
  ttlExpirationTime: time('When the export is removed.'),
  serviceName: str('Service of the export.'),
  virtualMachineName: str('Machine whose disks these are.'),
  conditions: atomicList(condition, 'Observed aspects.'),
});

export type ExportSpec = Static<typeof exportSpec>;
export type ExportStatus = Static<typeof exportStatus>;
export type ExportLink = Static<typeof exportLink>;
