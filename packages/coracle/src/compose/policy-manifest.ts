/** An object as `kubectl apply` takes it. */
export type Manifest = { readonly apiVersion: string; readonly kind: string } & Record<string, unknown>;
