/** What the cluster's KubeVirt object says about machines; every field it does not set has KubeVirt's default. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { KUBEVIRTS } from '@coracle/kubevirt/kinds/kinds';
import { DEFAULT_SMBIOS } from '@coracle/kubevirt/rules/machine/machine-plan';
import { podSizingOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';

/** Asks the API. A cluster without such an object, or one that we may not read, has the defaults. Throws ApiError. */
export async function clusterSettings(client: Client, signal: AbortSignal) {
  const list = await client.list(KUBEVIRTS, { signal }).catch((error: unknown) => {
    if (error instanceof ApiError && (error.code === 403 || error.code === 404)) return undefined;
    throw error;
  });
  const [kubevirt] = list?.items ?? [];
  const { manufacturer, product, family, version, sku } = kubevirt?.spec?.configuration?.smbios ?? {};
  return {
    smbios: {
      manufacturer: manufacturer || DEFAULT_SMBIOS.manufacturer,
      product: product || DEFAULT_SMBIOS.product,
      family: family || DEFAULT_SMBIOS.family,
      ...(version && { version }),
      ...(sku && { sku }),
    },
    podSizing: podSizingOf(kubevirt),
  };
}
