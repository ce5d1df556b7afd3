/** What the cluster's KubeVirt object says about SMBIOS; every field it does not set has KubeVirt's default. */
import { KUBEVIRTS } from '../../api/kinds/kubevirt/kinds.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Client } from '../../client/client.ts';
import { DEFAULT_SMBIOS, type SmbiosConfig } from '../../domain/machine/machine-plan.ts';

/** Asks the API. A cluster without such an object, or one that we may not read, has the defaults. Throws ApiError. */
export async function clusterSmbios(client: Client, signal: AbortSignal): Promise<SmbiosConfig> {
  const list = await client.list(KUBEVIRTS, { signal }).catch((error: unknown) => {
    if (error instanceof ApiError && (error.code === 403 || error.code === 404)) return undefined;
    throw error;
  });
  const { manufacturer, product, family, version, sku } = list?.items[0]?.spec?.configuration?.smbios ?? {};
  return {
    manufacturer: manufacturer || DEFAULT_SMBIOS.manufacturer,
    product: product || DEFAULT_SMBIOS.product,
    family: family || DEFAULT_SMBIOS.family,
    ...(version && { version }),
    ...(sku && { sku }),
  };
}
