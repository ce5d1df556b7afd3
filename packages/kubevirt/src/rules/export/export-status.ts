/** The status of an export, from what is known of its source (export.go, updateCommonVMExportStatusFields). */
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ExportLink, ExportStatus } from '../../kinds/kinds.ts';
import type { ReadonlyExport, VirtualMachineExport } from '../../kinds/kubevirt.ts';
import {
  exportHost,
  exportPath,
  exportServiceName,
  exportTokenName,
  FORMAT_FILES,
  MANIFEST_PATHS,
} from './export-names.ts';
import { type ExportSource, type Finding, snapshotClaimName } from './export-source.ts';

type Conditions = NonNullable<ExportStatus['conditions']>;

const DEFAULT_TTL_MS = 2 * 3_600_000;
const CONTENT_TYPE = 'cdi.kubevirt.io/storage.contentType';

/** When the export is removed, milliseconds since the epoch. */
export const expiryOf = ({ metadata, spec }: ReadonlyExport): number =>
  Date.parse(metadata.creationTimestamp ?? '') +
  (spec.ttlDuration === undefined ? DEFAULT_TTL_MS : (parseGoDuration(spec.ttlDuration) ?? DEFAULT_TTL_MS));

/** The name of the Secret, where there is one by now. */
export const tokenSecretOf = (object: ReadonlyExport): string => object.spec.tokenSecretRef ?? exportTokenName(object);

/** Whether a claim holds the disk of a machine, and not files (isKubevirtContentType). `dataVolume` is its content type. */
export function holdsDisk({ metadata, spec }: ReadonlyClaim, dataVolume: string | undefined): boolean {
  if (spec?.volumeMode === 'Block') return true;
  const said = metadata.annotations?.[CONTENT_TYPE] ?? dataVolume;
  return said === 'kubevirt' || said === '';
}

/** The name of a volume in the links: of a snapshot's, that of the claim it was taken of. */
export const linkName = (object: ReadonlyExport, claim: string): string =>
  object.spec.source.kind === 'VirtualMachineSnapshot' ? claim.slice(snapshotClaimName(object, '').length) : claim;

/** The links to what is offered. `isDisk` tells disks from files. */
export function exportLink(
  object: ReadonlyExport,
  {
    base,
    cert,
    claims,
    isDisk,
    hasMachine,
  }: {
    /** `https://HOST:PORT`, from outside. */
    readonly base: string;
    readonly cert: string;
    readonly claims: readonly ReadonlyClaim[];
    readonly isDisk: (claim: ReadonlyClaim) => boolean;
    readonly hasMachine: boolean;
  },
  side: 'internal' | 'external',
): ExportLink {
  const root = `${side === 'internal' ? `https://${exportHost(object)}` : base}${exportPath(keyOf(object as VirtualMachineExport))}`;
  const types = (['all', 'auth-header-secret'] as const).filter((type) => hasMachine || type !== 'all');
  return {
    cert: cert.trim(),
    volumes: claims.map((claim) => {
      const name = claim.metadata.name ?? '';
      const formats = isDisk(claim) ? (['raw', 'gzip'] as const) : (['dir', 'tar.gz'] as const);
      return {
        name: linkName(object, name),
        formats: formats.map((format) => ({ format, url: `${root}/volumes/${name}/${FORMAT_FILES[format]}` })),
      };
    }),
    manifests: types.map((type) => ({ type, url: `${root}/${side}/${MANIFEST_PATHS[type]}` })),
  };
}

/** The whole status. `links` are those of an export from which can be downloaded. */
export function exportStatus(
  object: ReadonlyExport,
  {
    source,
    links,
    now,
  }: { readonly source: ExportSource; readonly links: ExportStatus['links']; readonly now: number },
): ExportStatus {
  const { obstacle, finding, isEmpty, isOver, machine, claims } = source;
  const isReady = obstacle === undefined && claims.length > 0;
  const ready: Finding = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    reason: isReady ? 'PodReady' : (obstacle?.reason ?? 'Unknown'),
    message: obstacle?.message ?? '',
  };
  const hasSecret = object.spec.tokenSecretRef !== undefined || isReady || object.status?.tokenSecretRef !== undefined;
  return {
    phase: isReady ? 'Ready' : isEmpty ? 'Skipped' : isOver ? 'Terminated' : 'Pending',
    links: isReady && links ? links : {},
    ...(hasSecret && { tokenSecretRef: tokenSecretOf(object) }),
    ttlExpirationTime: formatTime(expiryOf(object)),
    serviceName: exportServiceName(object),
    ...(machine !== undefined && { virtualMachineName: machine }),
    conditions: withFindings(object.status?.conditions, [ready, ...(finding ? [finding] : [])], now),
  };
}

function withFindings(
  before: DeepReadonly<Conditions> | undefined,
  findings: readonly Finding[],
  now: number,
): Conditions {
  const first = { type: 'PVCReady', status: 'False', reason: 'Unknown', message: '' } as const;
  const known: DeepReadonly<Conditions> = before ?? [{ ...first, lastTransitionTime: formatTime(now) }];
  const changed = findings.map((finding) => {
    const old = known.find(({ type }) => type === finding.type);
    const isSame =
      old?.status === finding.status && old.reason === finding.reason && (old.message ?? '') === finding.message;
    return isSame ? { ...old } : { ...finding, lastTransitionTime: formatTime(now) };
  });
  const rest = known.filter(({ type }) => !findings.some((finding) => finding.type === type));
  return [...changed, ...rest.map((one) => ({ ...one }))] as Conditions;
}
