import { getCACertificates, setDefaultCACertificates } from 'node:tls';

/** Made for these tests only: for the name `localhost`, signed by itself, valid for a hundred years. */
export const LOCALHOST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUaLgMr9BTZ9KUIClInJ+E3svQq+UwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAyMjIyOVoYDzIxMjYxMDI4
MDIyMjI5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR643QUibDPV58DI4wu0PAAve0aNET1CI0z1k85fN2w2EKa8Phd185/
WPXodmEY6ZuuWecY/wXTvXPHE6l9+vX+o2kwZzAdBgNVHQ4EFgQUBxVmtFL0Qkd2
jpnpQiuan3xLZLIwHwYDVR0jBBgwFoAUBxVmtFL0Qkd2jpnpQiuan3xLZLIwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIhAPzt1nB8UHJekyCp5zZJEU8Qba3fK53IlAzY1Fe5o0A2AiBNLQuJPEwl
SPOwWGt98lz4IX1VPf2QkmQkj6nJk5qrRQ==
-----END CERTIFICATE-----
`;

/** Its private key. */
export const LOCALHOST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbGTESeHQLDSZaH5W
AIBhs0W30GdZVkSWf8qOwCYHtgqhRANCAAR643QUibDPV58DI4wu0PAAve0aNET1
CI0z1k85fN2w2EKa8Phd185/WPXodmEY6ZuuWecY/wXTvXPHE6l9+vX+
-----END PRIVATE KEY-----
`;

/** From now on this process trusts it as if `NODE_EXTRA_CA_CERTS` named it. Returns what ends that. */
export function trustLocalhost(): () => void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, LOCALHOST_CERTIFICATE]);
  return () => setDefaultCACertificates(before);
}
