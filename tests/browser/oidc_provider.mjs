// A certified OpenID Connect provider. Its login page takes any address with any password.
// node oidc_provider.mjs PORT CLIENT_SECRET REDIRECT_URI
import Provider from "oidc-provider";

const [port, secret, redirect] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "passhat", client_secret: secret, redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email"] },
  findAccount: (_, address) => ({
    accountId: address,
    claims: () => ({ sub: address, email: address }),
  }),
});
provider.listen(port, "127.0.0.1");
