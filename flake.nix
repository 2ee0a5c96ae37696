{
  description = "A tmux fleet supervisor driven by one declarative TOML file";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.05";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      devShells = forEach (pkgs: {
        default = pkgs.mkShell {
          packages = [ pkgs.python311 pkgs.tmux pkgs.git ];
          shellHook = ''
            echo "python $(python3 --version | cut -d' ' -f2), $(tmux -V), git $(git --version | cut -d' ' -f3)"
            echo "The agent CLIs (claude, opencode, codex) are external: install those you use yourself."
            echo "Try ./smoke.sh, then ./tests/run.sh"
          '';
        };
      });
    };
}
